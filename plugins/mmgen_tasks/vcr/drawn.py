"""VCR, drawn: questions about scenes with four answers, and four rationales for the right one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from random import Random
from typing import TYPE_CHECKING, Any

from mmgen_scenes.drawn import DrawnDataset, Made, things
from mmgen_scenes.world import KINDS, Scene, sample

from mmgen.tensors import All, Example

from . import drawn_choices as choices

if TYPE_CHECKING:
    from .config import SceneChoices


class DrawnChoices(DrawnDataset):
    """Examples of a `SceneChoices` config: choices of an answer (ITEM-answer), or of a rationale given the question and
    its answer (ITEM-rationale; ITEM-rationale-K where answer K is given, whether it is right or not).

    inputs   "image": the scene's name; "question"; "question_mentions": `All` of (first character, end, things)
    labels   "choices": four texts; "choice_mentions": the mentions of each; "choice": which one is right, from 0, but
             where an answer is given that need not be; "objects": the kind of every thing, "person" of those that
             have names
    facts    asks: "answer" or "rationale"; item and group; image, the scene's things, and the form of question
    """

    name = "drawn scenes with choices"

    def __init__(self, config: SceneChoices) -> None:
        super().__init__(config)
        self.config = config

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        return {"objects": tuple(KINDS) if self.config.tags == "kinds" else (choices.PERSON,)}

    def make(self, split: str, i: int) -> Made:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/choices")
        (first,) = rng.choices(tuple(choices.FIRST), tuple(choices.FIRST.values()))
        items: list[choices.Item] = []
        while not items:
            scene = sample(rng, f"choices-{split}-{i:05d}", config.min_things, config.max_things)
            called = choices.NAMES if config.tags == "names" else [f"the {thing.kind}" for thing in scene.things]
            items = choices.write(rng, scene, config.items, called, first)
        return Made(
            (scene,), tuple(each for number, item in enumerate(items) for each in self._examples(scene, number, item))
        )

    def _examples(self, scene: Scene, number: int, item: choices.Item) -> Iterator[Example]:
        asks, own = self.config.asks, f"{scene.id}-{number}"
        facts = {"item": own, "group": own, "image": scene.id, "form": item.form, "things": things(scene)}
        kinds = tuple(thing.kind if self.config.tags == "kinds" else choices.PERSON for thing in scene.things)

        def example(name: str, kind: str, question: choices.Told, chosen: choices.Choices, known: bool) -> Example:
            labels: dict[str, Any] = {
                "choices": tuple(each.text for each in chosen.texts),
                "choice_mentions": tuple(each.mentions for each in chosen.texts),
                "objects": kinds,
            }
            if known:
                labels["choice"] = chosen.right
            inputs = {"image": scene.id, "question": question.text, "question_mentions": All(question.mentions)}
            return Example(f"{own}-{name}", inputs, (), {"asks": kind, **facts}, labels)

        if asks != "rationale":
            yield example("answer", "answer", item.question, item.answers, True)
        if asks != "answer":
            given = item.question.then(item.answers.texts[item.answers.right])
            yield example("rationale", "rationale", given, item.rationales, True)
        if asks == "every":
            for place, answer in enumerate(item.answers.texts):
                yield example(f"rationale-{place}", "rationale", item.question.then(answer), item.rationales, False)
