"""NLVR2, drawn: statements about two scenes side by side."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.drawn import DrawnDataset, SceneSet, things
from mmgen_scenes.world import sample

from mmgen.tensors import All, Example

from . import drawn_statements as statements

if TYPE_CHECKING:
    from .config import ScenePairs


class DrawnPairs(DrawnDataset):
    """Examples of a `ScenePairs` config: a statement about a pair of scenes. Names follow NLVR2: an example is
    split-set-pair-statement, its pictures are split-set-pair-img0, on the left, and -img1.

    inputs   "image": the names of both scenes; "statement"
    labels   "truth"
    facts    group: the statement and its set; things: those of the left and of the right scene
    """

    name = "pairs of drawn scenes"
    config: ScenePairs

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/pairs")
        plan, written = statements.write(rng, config.statements)
        scenes = tuple(
            sample(rng, f"{split}-{i}-{k // 2}-img{k % 2}", config.min_things, config.max_things, looks, plan.kinds)
            for k, looks in enumerate(plan.pictures)
        )
        known = [things(scene) for scene in scenes]
        examples = tuple(
            Example(
                f"{split}-{i}-{pair}-{number}",
                {"image": All((scenes[2 * pair].id, scenes[2 * pair + 1].id)), "statement": text},
                facts={"group": f"{split}-{i}--{number}", "things": known[2 * pair : 2 * pair + 2]},
                labels={"truth": true},
            )
            for number, (text, truth) in enumerate(written)
            for pair, true in enumerate(truth)
        )
        return SceneSet(scenes, examples)

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"truth": ("False", "True")}
