"""The data set `scene_pairs`, NLVR2 drawn: statements about two scenes side by side."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.drawn import DrawnDataset, SceneSet, things
from mmgen_scenes.world import sample
from mmgen_vision.truths import LABELS

from mmgen.examples import All, Example

from . import drawn_statements as statements

if TYPE_CHECKING:
    from .config import ScenePairs


class DrawnPairs(DrawnDataset):
    """Examples of a `ScenePairs` config: a statement about a pair of scenes. Names follow NLVR2: an example is
    split-set-pair-statement, its pictures are split-set-pair-img0, on the left, and -img1.

    inputs   "image": the names of both scenes; "statement"
    labels   "truth"
    facts    group: the statement and its set; form: the statement's; things: those of the left and of the right scene
    """

    name = "pairs of drawn scenes"
    config: ScenePairs

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/pairs")
        plan, written = statements.write(rng, config.statements)
        scenes = tuple(
            sample(rng, f"{split}-{i}-{k // 2}-img{k % 2}", *config.things(split), looks, plan.kinds)
            for k, looks in enumerate(plan.pictures)
        )
        known = [things(scene) for scene in scenes]
        examples = tuple(
            Example(
                f"{split}-{i}-{pair}-{number}",
                {"image": All((scenes[left].id, scenes[right].id)), "statement": statement.text},
                facts={
                    "group": f"{split}-{i}--{number}",
                    "form": statement.form,
                    "things": [known[left], known[right]],
                },
                labels={"truth": true},
            )
            for number, (statement, pairs) in enumerate(self._add_pairings(split, i, plan, written))
            for pair, (left, right, true) in enumerate(pairs)
        )
        return SceneSet(scenes, examples)

    def _add_pairings(
        self,
        split: str,
        i: int,
        plan: statements.Plan,
        written: list[tuple[statements.Statement, list[statements.Pair]]],
    ) -> list[tuple[statements.Statement, list[statements.Pair]]]:
        """The statements with further pairs of the same pictures, or others of the forms that the config names."""
        config, rng = self.config, Random(f"{self.config.seed}/{split}/{i}/pairings")
        count = config.pairings if split == "train" else statements.PAIRS
        if config.forms:
            written = [
                (statement, []) for statement in statements.write_others(rng, plan, config.statements, config.forms)
            ]
        return [
            (statement, [*pairs, *statements.draw_pairs(rng, plan, statement, count - len(pairs), pairs)])
            for statement, pairs in written
        ]

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"truth": LABELS}
