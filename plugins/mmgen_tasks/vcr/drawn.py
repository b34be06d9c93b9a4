"""The data set `scene_choices`, VCR drawn: questions about scenes with four answers, and four rationales."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.drawn import DrawnDataset, SceneSet, things
from mmgen_scenes.world import KINDS, Scene, sample

from mmgen.examples import Example

from . import drawn_choices as choices
from .items import NAMES, PERSON, Item

if TYPE_CHECKING:
    from .config import SceneChoices


class DrawnChoices(DrawnDataset):
    """Examples of a `SceneChoices` config: choices of an answer (ITEM-answer), or of a rationale given the question and
    its answer (ITEM-rationale; ITEM-rationale-K given answer K, whether it is right or not).

    inputs   "image": the scene's name; "question"; "question_mentions": `All` of (first character, end, things)
    labels   "choices": four texts; "choice_mentions": their mentions; "choice": which choice is right, from 0, absent
             in ITEM-rationale-K; "objects": the kind of every thing, or "person" for things with names
    facts    asks: "answer" or "rationale"; item and group; image, the scene's things, and the form of question
    """

    name = "drawn scenes with choices"
    config: SceneChoices

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"objects": tuple(KINDS) if self.config.tags == "kinds" else (PERSON,)}

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/choices")
        (first,) = rng.choices(tuple(choices.FIRST), tuple(choices.FIRST.values()))
        items: list[Item] = []
        while not items:
            scene = sample(rng, f"choices-{split}-{i:05d}", *config.things(split))
            thing_names = NAMES if config.tags == "names" else [f"the {thing.kind}" for thing in scene.things]
            items = choices.write(rng, scene, config.num_questions, thing_names, first)
        if config.forms:
            rng = Random(f"{config.seed}/{split}/{i}/choices of forms")
            items = choices.write_others(rng, scene, config.num_questions, thing_names, config.forms)
        return SceneSet((scene,), tuple(example for item in items for example in self._examples(scene, item)))

    def _examples(self, scene: Scene, item: Item) -> Iterator[Example]:
        objects = item.objects if self.config.tags == "kinds" else (PERSON,) * len(scene.things)
        facts = {**item.facts, "things": things(scene)}
        return item._replace(objects=objects, facts=facts).examples(self.config.subtask)
