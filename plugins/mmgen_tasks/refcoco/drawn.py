"""The data set `scene_expressions`, RefCOCO+ drawn: expressions that fit one thing of a scene."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.detector import propose
from mmgen_scenes.drawn import DrawnDataset, SceneSet, things
from mmgen_scenes.world import Scene, sample, sample_unlike_looks
from mmgen_vision.boxes import Box

from mmgen.examples import Example

from . import drawn_expressions as expressions

if TYPE_CHECKING:
    from .config import SceneExpressions


class DrawnExpressions(DrawnDataset):
    """Examples of a `SceneExpressions` config, one per expression.

    inputs   "image": the scene's name; "expression"
    labels   "box": the box of the only thing that the expression fits
    facts    image, the scene's things, and "thing": the position of the thing that the expression refers to
    """

    name = "drawn scenes with expressions"
    config: SceneExpressions

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/expressions")
        name = f"expressions{config.proposals or ''}-{split}-{i:05d}"
        scene = sample(rng, name, *config.things(split), sample_unlike_looks(rng, config.same_kind))
        known, wording = things(scene), Random(f"{config.seed}/{split}/{i}/sentences")
        examples = tuple(
            Example(
                f"{scene.id}-{place}",
                {
                    "image": scene.id,
                    "expression": expressions.in_sentence(wording, text) if config.in_sentences else text,
                },
                facts={"image": scene.id, "things": known, "thing": thing},
                labels={"box": scene.things[thing].box},
            )
            for place, (thing, text) in enumerate(expressions.write(rng, scene, config.expressions))
        )
        return SceneSet((scene,), examples)

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        return propose(scene, [(t.box, f"{t.color} {t.kind}") for t in scene.things], self.config.proposals)
