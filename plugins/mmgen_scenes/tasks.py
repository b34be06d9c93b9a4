"""Drawn versions of the tasks that models of pictures and texts are judged by: data sets whose examples look like those
of the published files (`mmgen_tasks`)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from mmgen.tensors import All, Example

from . import (
    SceneAnswers,
    SceneChoices,
    SceneExpressions,
    ScenePairs,
    ScenePhrases,
    answers,
    captions,
    choices,
    expressions,
    pairs,
)
from .drawn import DrawnDataset, Made, plain_scene, things
from .proposals import propose, union
from .world import KINDS, SORT, Box, Scene, sample, unlike

AGREE = 0.3  # what an answer weighs for each person who gives it, 1 at most (Antol et al., 2015)


class DrawnAnswers(DrawnDataset):
    """Examples of a `SceneAnswers` config, a question each.

    inputs   "image": the scene's name; "question"; "answer": the right one, for pretraining
    targets  in the split to evaluate what ten people answer, in others the most common answer, or all
    labels   "answers": {answer: its weight}
    facts    question_type (the form of question), answer_type (as in VQA), image and the scene's things
    """

    name = "drawn scenes with answers"

    def __init__(self, config: SceneAnswers) -> None:
        super().__init__(config)
        self.config = config

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        return {"answers": answers.ANSWERS}

    def make(self, split: str, i: int) -> Made:
        config = self.config
        _, scene = plain_scene(config, split, i)
        rng = Random(f"{config.seed}/{split}/{i}/answers")
        kept = answers.acceptance(config.min_things, config.max_things)
        known = things(scene)
        examples = []
        for place, question in enumerate(answers.write(rng, scene, config.questions, kept)):
            given = answers.people(rng, question)
            kind = answers.answer_type(question.answer)
            examples.append(
                Example(
                    f"{scene.id}-{place}",
                    {"image": scene.id, "question": question.text, "answer": question.answer},
                    given if split == config.evaluate or config.learn_from == "all" else (question.answer,),
                    {"image": scene.id, "question_type": question.form, "answer_type": kind, "things": known},
                    {"answers": {answer: min(1.0, AGREE * count) for answer, count in Counter(given).items()}},
                )
            )
        return Made((scene,), tuple(examples))


class DrawnPairs(DrawnDataset):
    """Examples of a `ScenePairs` config: a statement about a pair of scenes. Names are those of NLVR2: an example is
    split-set-pair-statement, its pictures are split-set-pair-img0, on the left, and -img1.

    inputs   "image": the names of both scenes; "statement"
    labels   "truth"
    facts    group: the statement and its set; things: those of the left and of the right scene
    """

    name = "pairs of drawn scenes"

    def __init__(self, config: ScenePairs) -> None:
        super().__init__(config)
        self.config = config

    def make(self, split: str, i: int) -> Made:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/pairs")
        plan, statements = pairs.write(rng, config.statements)
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
            for number, (text, truth) in enumerate(statements)
            for pair, true in enumerate(truth)
        )
        return Made(scenes, examples)

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        return {"truth": ("False", "True")}


class DrawnExpressions(DrawnDataset):
    """Examples of a `SceneExpressions` config, an expression each.

    inputs   "image": the scene's name; "expression"
    labels   "box": the box of the only thing that the expression fits
    facts    image, the scene's things, and "thing": which of them is meant
    """

    name = "drawn scenes with expressions"

    def __init__(self, config: SceneExpressions) -> None:
        super().__init__(config)
        self.config = config

    def make(self, split: str, i: int) -> Made:
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/expressions")
        name = f"expressions{config.proposals or ''}-{split}-{i:05d}"
        scene = sample(rng, name, config.min_things, config.max_things, unlike(rng, config.unlike))
        known = things(scene)
        examples = tuple(
            Example(
                f"{scene.id}-{place}",
                {"image": scene.id, "expression": text},
                facts={"image": scene.id, "things": known, "thing": thing},
                labels={"box": scene.things[thing].box},
            )
            for place, (thing, text) in enumerate(expressions.write(rng, scene, config.expressions))
        )
        return Made((scene,), examples)

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        return propose(scene, [(t.box, f"{t.color} {t.kind}") for t in scene.things], self.config.proposals)


class DrawnPhrases(DrawnDataset):
    """Examples of a `ScenePhrases` config: a caption of the data set `scenes`, and where what it names is.

    inputs   "image": the scene's name; "caption"
    labels   "phrases": (first character, end, box) of the caption's noun phrases; a box is around all things that are
             named. In the split to evaluate an example has one of them
    facts    image, the scene's things and, in the split to evaluate, the phrase's type
    """

    name = "drawn scenes with phrases"

    def __init__(self, config: ScenePhrases) -> None:
        super().__init__(config)
        self.config = config

    def make(self, split: str, i: int) -> Made:
        config = self.config
        rng, scene = plain_scene(config, split, i)
        scene = replace(scene, id=f"phrases{config.proposals or ''}-{scene.id}")
        first, second = rng.sample(range(len(scene.groups)), 2)
        shared = {"image": scene.id, "things": things(scene)}
        examples = []
        for number, caption in enumerate(captions.write(rng, scene, (first, second), config.captions)):
            phrases = [
                (start, _noun_end(caption.text, start, end), union([scene.things[i].box for i in members]))
                for start, end, members in captions.spans(scene, caption)
            ]
            inputs = {"image": scene.id, "caption": caption.text}
            own = f"{scene.id}-{number}"
            if split != config.evaluate:
                examples.append(Example(own, inputs, (), shared, {"phrases": tuple(phrases)}))
                continue
            for place, (phrase, group) in enumerate(zip(phrases, caption.groups, strict=True)):
                facts = {**shared, "type": SORT[scene.groups[group].kind.name]}
                examples.append(Example(f"{own}-{place}", inputs, (), facts, {"phrases": (phrase,)}))
        return Made((scene,), tuple(examples))

    def boxes(self, scene: Scene) -> tuple[list[Box], list[str]]:
        """Near things, and near what is around all things of a kind."""
        wanted = [(thing.box, f"{thing.color} {thing.kind}") for thing in scene.things]
        for group in scene.groups:
            if group.plural:
                around = union([scene.things[i].box for i in group.members])
                wanted.append((around, f"{group.color} {group.kind.plural}"))
        return propose(scene, wanted, self.config.proposals)


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


def _noun_end(caption: str, start: int, end: int) -> int:
    """Where a noun phrase ends without its place, which is a phrase of its own in Flickr30K Entities."""
    place = re.search(r" (?:on|in) the ", caption[start:end])
    return start + place.start() if place else end
