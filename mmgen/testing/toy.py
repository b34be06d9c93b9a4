"""Fakes around a backbone: the embedder `words`, the generator `greedy`, which reads everything again for every token,
and the data set `toy`, which has painted pictures. Short examples of the contract."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Literal

import torch
from PIL import Image
from pydantic import Field
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..configs import DatasetConfig, EmbedderConfig, GeneratorConfig
from ..decoding import Decoding
from ..errors import DataError
from ..examples import Example, Generation, ResolvedExample
from ..objectives import Generator, Sequencer, TextTargets
from ..parts import Backbone, Dataset, Embedder, Picture, Reader
from ..search import as_generations, search
from ..sequence import Prefix
from ..tensors import WRITTEN, Batch, Hiding, Segment, Slots, Tail, tail_of

COLORS = {"red": (220, 40, 40), "green": (40, 170, 60), "blue": (50, 80, 220), "black": (20, 20, 20)}
THINGS = ("cat", "ball", "house", "boat", "tree", "chair")
TEXTS = tuple(f"a {color} {thing} near the water , what color is the {thing} ?" for color in COLORS for thing in THINGS)


class Words(EmbedderConfig):
    """A text as the backbone's word embeddings."""

    hides = "words"

    type: Literal["words"] = "words"
    bag: bool = Field(False, description="words share one position, and their mean is added to what is written")

    def build(self, backbone: Backbone) -> WordsEmbedder:
        return WordsEmbedder(self.fields[0], backbone, self.bag)

    def texts(self, example: Example) -> Iterable[str]:
        return example.shown(self.fields[0])


class WordsReader(Reader):
    hides: ClassVar[Literal["words", "regions"] | None] = "words"

    def __init__(self, field: str, backbone: Backbone) -> None:
        self.field, self.encode, self.mask_id = field, backbone.text_encoder, backbone.mask_id

    def read(self, example: ResolvedExample) -> Tensor:
        if not isinstance(example.inputs.get(self.field), str):
            raise DataError(f"example '{example.id}' has no {self.field}")
        return torch.tensor(self.encode([example.inputs[self.field]])[0])

    def hide(self, item: Tensor, draw: random.Random, hiding: Hiding) -> tuple[Tensor, Tensor]:
        """Hides a share of the words as [MASK]; random words are not used."""
        hidden = torch.tensor([draw.random() < hiding.rate for _ in item], dtype=torch.bool)
        return item.masked_fill(hidden, self.mask_id), item.masked_fill(~hidden, -100)

    def collate(self, items: Sequence[Tensor]) -> dict[str, Tensor]:
        ids = pad_sequence(list(items), batch_first=True, padding_value=-1)
        return {"ids": ids.clamp(min=0), "mask": ids >= 0}


class WordsEmbedder(Embedder):
    def __init__(self, field: str, backbone: Backbone, bag: bool = False) -> None:
        super().__init__()
        self.reader, self.bag = WordsReader(field, backbone), bag
        self._backbone = [backbone]  # in a list: its parameters are not ours

    def forward(self, ids: Tensor, mask: Tensor) -> Segment:
        return Segment(self._backbone[0].embed(ids), mask, positions=torch.zeros_like(ids) if self.bag else None)

    def tail_term(self, slots: Slots, collated: Mapping[str, Tensor] | None) -> Tensor | None:
        if not self.bag or collated is None:
            return None
        mask = collated["mask"].unsqueeze(-1)
        return (self._backbone[0].embed(collated["ids"]) * mask).sum(1) / mask.sum(1)


class Greedy(GeneratorConfig):
    """Writes from left to right: the likeliest next token every time, or by beams or samples."""

    type: Literal["greedy"] = "greedy"
    max_tokens: int = Field(12, ge=2, description="tokens of a text, its end included")

    def build(self, backbone: Backbone) -> GreedyGenerator:
        return GreedyGenerator(self, backbone)


class NextTokens(TextTargets):
    """A target y_1..y_T is laid out as [SEP], y_1..y_(T-1), and each slot predicts the next token."""

    def lay_out(self, targets: Sequence[Sequence[Sequence[int]]]) -> Tail:
        rows = [
            [
                (token, t, WRITTEN, group, t + 1, label)
                for group, y in enumerate(texts, 1)
                for t, (token, label) in enumerate(zip([self.end_id, *y], y, strict=False))
            ]
            for texts in targets
        ]
        return tail_of(rows, self.pad_id)[0]


class GreedyGenerator(Generator):
    """Trains and writes; has no parameters besides the backbone's."""

    reader: NextTokens

    def __init__(self, config: Greedy, backbone: Backbone) -> None:
        super().__init__()
        self.reader = NextTokens(backbone, config.max_tokens)

    def generate(self, model: Sequencer, batch: Batch, options: Decoding) -> list[list[Generation]]:
        prefix = model.prefix(batch)
        start = torch.full_like(prefix.free, model.backbone.end_id)
        stepper = Rereader(model, prefix, self.reader)
        results = search(stepper, start, options, model.backbone, self.max_tokens, batch.seeds)
        return as_generations(results, batch.ids, model.backbone)


class Rereader:
    """The stepper of a search, without a cache."""

    def __init__(self, model: Sequencer, prefix: Prefix, reader: NextTokens) -> None:
        self.model, self.prefix, self.reader = model, prefix, reader

    def next_logits(self, written: Tensor) -> Tensor:
        prefix = self.prefix.repeat(len(written) // len(self.prefix))
        tail = self.reader.lay_out([[[*tokens, 0]] for tokens in written.tolist()])
        rows = prefix.slots.followed_by(self.model.behind(prefix, tail))
        return self.model.backbone.logits(self.model.backbone.encode(rows).last[:, -1]).float()

    def reorder_cache(self, rows: Tensor) -> None:
        return


class Toy(DatasetConfig):
    """Coloured things: a caption with the thing only, a question about its colour, a picture of its colour."""

    type: Literal["toy"] = "toy"

    def build(self) -> ToyDataset:
        return ToyDataset()


class ToyDataset(Dataset):
    """Every thing in every colour: 16 examples for training, 4 for validation, 4 for evaluation."""

    def __init__(self) -> None:
        examples = [
            Example(
                f"{color}-{thing}",
                {"image": f"{color}-{thing}", "caption": (f"a {thing} near the water", f"the {thing}")},
                (f"what color is the {thing} ?", f"a {color} {thing} ?"),
            )
            for thing in THINGS
            for color in COLORS
        ]
        self.examples_by_split = {"train": examples[:16], "val": examples[16:20], "test": examples[20:]}

    def splits(self) -> tuple[str, ...]:
        return tuple(self.examples_by_split)

    def split(self, name: str) -> Sequence[Example]:
        if name not in self.examples_by_split:
            raise DataError(f"the toy data set has no split '{name}'; the splits are: {', '.join(self.splits())}")
        return self.examples_by_split[name]

    def describe(self) -> dict[str, Any]:
        return {"licence": "free of any", "source": "mmgen.testing"}

    def pictures(self) -> Iterator[Picture]:
        boxes = [(0.25, 0.25, 0.75, 0.75), (0.0, 0.0, 1.0, 1.0)]
        for example in (example for examples in self.examples_by_split.values() for example in examples):
            color = COLORS[example.id.split("-")[0]]
            yield Picture(example.id, partial(_paint_picture, color), boxes, ["thing", "all"])


def _paint_picture(color: tuple[int, int, int]) -> Image.Image:
    picture = Image.new("RGB", (48, 32), (235, 235, 235))
    picture.paste(color, (12, 8, 36, 24))
    return picture
