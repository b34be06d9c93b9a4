"""The base of data sets about drawn scenes: splits made on first use, pictures drawn when loaded, things as facts."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from functools import partial
from random import Random
from typing import Any

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.parts import Dataset, Picture

from .configs import SPLITS, Drawn
from .world import KINDS, Box, Scene, sample

WHOLE_SCENE = "the whole scene"


SceneSet = tuple[tuple[Scene, ...], tuple[Example, ...]]  # scenes that are made together, and the examples about them


class DrawnDataset(Dataset, abc.ABC):
    """A data set about scenes sampled from the world. Nothing is drawn before a picture is loaded."""

    name: str  # in plain words

    def __init__(self, config: Drawn) -> None:
        self.config = config
        self.sizes = dict(zip(SPLITS, (config.train_size, config.val_size, config.test_size), strict=True))
        self._scene_sets: dict[str, tuple[SceneSet, ...]] = {}

    @abc.abstractmethod
    def make(self, split: str, i: int) -> SceneSet:
        """The i-th scene set of a split, a function of the seed, the split and i alone, not of the sizes."""

    def splits(self) -> tuple[str, ...]:
        return SPLITS

    def split(self, name: str) -> Sequence[Example]:
        return tuple(example for _, examples in self.scene_sets(name) for example in examples)

    def scene_sets(self, name: str) -> tuple[SceneSet, ...]:
        """All scene sets of a split, made on first use. Raises DataError for an unknown split."""
        if name not in SPLITS:
            raise DataError(f"{self.name} have no split '{name}'; choose from: {', '.join(SPLITS)}")
        if name not in self._scene_sets:
            self._scene_sets[name] = tuple(self.make(name, i) for i in range(self.sizes[name]))
        return self._scene_sets[name]

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        """The boxes of a scene's picture and their descriptions: those of the things and, last, the whole picture."""
        descriptions = [f"{thing.color} {thing.kind}" for thing in scene.things]
        return [*(thing.box for thing in scene.things), (0.0, 0.0, 1.0, 1.0)], [*descriptions, WHOLE_SCENE]

    def pictures(self) -> Iterator[Picture]:
        """One picture per scene, with the class probabilities that a detector might give to its boxes."""
        from .detector import detector_classes
        from .draw import draw

        for scene in (scene for name in SPLITS for scenes, _ in self.scene_sets(name) for scene in scenes):
            boxes, region_names = self.boxes(scene)
            loads = partial(draw, scene, self.config.image_size)
            yield Picture(scene.id, loads, boxes, region_names, detector_classes(scene, region_names))

    def describe(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "examples": {name: len(self.split(name)) for name in SPLITS},
            "kinds of things": len(KINDS),
            "licence": "made by this program; free of any",
            "source": f"mmgen_scenes, seed {self.config.seed}",
        }


def plain_scene(config: Drawn, split: str, i: int) -> tuple[Random, Scene]:
    """The random generator and the i-th scene of a split, as the data set `scenes` samples them. A data set that shows
    this scene unchanged may share the features of its picture."""
    rng = Random(f"{config.seed}/{split}/{i}")
    return rng, sample(rng, f"{split}-{i:05d}", *config.things)


def things(scene: Scene) -> list[dict[str, Any]]:
    """The things of a scene, as facts of an example."""
    return [{**vars(thing), "box": list(thing.box)} for thing in scene.things]
