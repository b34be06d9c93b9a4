"""All sizes: those of the papers on a GPU, and tiny ones in the stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Epoch:
    """A synthetic data set: training images, questions per image, measured epochs, numbers of loader workers."""

    name: str
    images: int
    questions: int
    stored: int  # images whose features are in the file; the others repeat them
    epochs: int
    workers: tuple[int, ...]
    goal: float  # seconds an epoch on one H200
    paper: float  # seconds an epoch that the paper tells


@dataclass(frozen=True)
class Sizes:
    """The device, the encoder's shape, and what is trained and generated."""

    device: str
    layers: int
    width: int
    words: int
    features: int
    images: int  # learnt from at a time where memory is cut
    written: int  # pictures that are written about
    batches: tuple[int, ...]  # of them, at a time
    pictures: tuple[int, ...]  # at a time, where orders of writing are compared
    lengths: tuple[int, ...]  # tokens of a text
    rounds: int
    epochs: tuple[Epoch, ...]
    bench: tuple[str, ...]  # of `mmgen bench`, beside the case
    main: tuple[str, ...]  # of `mmgen run`, beside the recipe
    several: tuple[str, ...]  # of `mmgen run` in several processes
    long: Mapping[str, tuple[str, ...]]  # of `mmgen run`, by recipe of a task that takes long
    families: str | None  # which tests of the suite; all by default

    @property
    def shape(self) -> tuple[str, ...]:
        """The options of every measuring command."""
        named = {"device": self.device, "layers": self.layers, "width": self.width}
        named |= {"words": self.words, "features": self.features}
        return tuple(word for name, value in named.items() for word in (f"--{name}", str(value)))


def settings(**values: object) -> tuple[str, ...]:
    """The options that change a recipe; a table and its key are joined by two underscores."""
    named = ((name.replace("__", "."), value) for name, value in values.items())
    return tuple(word for name, value in named for word in ("--set", f"{name}={value}"))


REAL = Sizes(
    "cuda",
    layers=12,
    width=768,
    words=30_522,
    features=2048,
    images=64,
    written=1250,
    batches=(32, 256, 1250),
    pictures=(1, 32, 256),
    lengths=(20, 10),
    rounds=3,
    epochs=(
        Epoch("VQG_COCO", 2500, 5, stored=2500, epochs=6, workers=(0, 4, 12), goal=1.0, paper=30.0),
        Epoch("VQA", 82_783, 3, stored=8192, epochs=2, workers=(12,), goal=20.0, paper=120.0),
    ),
    bench=("--device", "cuda", "--batch", "64", "--rounds", "5"),
    main=(),
    several=(),
    long={"statements": ("--seeds", "3"), "choices": (), "matching": ()},
    families=None,
)

SCENES = {"data__train_size": 16, "data__val_size": 2, "data__test_size": 4}
TOY = {"backbone__num_hidden_layers": 1, "backbone__hidden_size": 16, "backbone__num_attention_heads": 2}


def brief(*steps: str, size: int, sized: tuple[str, ...]) -> dict[str, object]:
    """One epoch of these steps, and few examples of those with data of their own."""
    epochs = {f"steps__{step}__training__epochs": 1 for step in steps}
    return epochs | {f"steps__{s}__data__{split}_size": size for s in sized for split in ("train", "val", "test")}


PAIRS, CHOICES = ("one", "few", "all"), ("color", "places", "rationales")
LONG = {
    "statements": brief("assign", *PAIRS, size=2, sized=PAIRS) | brief(size=4, sized=("expressions",)),
    "choices": brief("answers", *CHOICES, size=2, sized=CHOICES),
    "matching": brief("expressions", "assign", "fits", "matching", "truth", size=4, sized=("expressions", "truth")),
}
TINY = Sizes(
    "cpu",
    layers=1,
    width=16,
    words=1000,
    features=8,
    images=4,
    written=6,
    batches=(3, 6),
    pictures=(1, 3),
    lengths=(6,),
    rounds=1,
    epochs=(
        Epoch("VQG_COCO", 60, 5, stored=60, epochs=2, workers=(0,), goal=1.0, paper=30.0),
        Epoch("VQA", 90, 3, stored=8, epochs=2, workers=(0,), goal=20.0, paper=120.0),
    ),
    bench=("--device", "cpu", "--batch", "2", "--rounds", "1", "--layers", "1", "--width", "16", "--words", "1000"),
    main=(*settings(**SCENES, **TOY, training__epochs=1), "--step", "caption"),
    several=settings(data__train_size=10, training__epochs=1, steps__first__evaluate="false"),
    long={recipe: settings(**SCENES, **TOY, **some, training__epochs=1) for recipe, some in LONG.items()},
    families="bert and not roberta and not albert and not camembert and not megatron",
)
