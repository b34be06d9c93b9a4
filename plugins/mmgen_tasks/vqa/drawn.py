"""The data set `scene_answers`, VQA drawn: questions about scenes, the answers of ten people, some unanswerable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from mmgen_scenes.drawn import DrawnDataset, SceneSet, plain_scene, things
from mmgen_scenes.questions import find_answers
from mmgen_scenes.world import KINDS, SORT, SORTS, sample
from mmgen_vision.answers import PEOPLE, weights

from mmgen.examples import Example

from . import drawn_questions as questions

if TYPE_CHECKING:
    from .config import SceneAnswers

UNANSWERABLE = "unanswerable"
ALIKE = {  # colours that people confuse
    "red": ("orange", "purple"),
    "orange": ("red", "yellow"),
    "yellow": ("orange", "white"),
    "green": ("blue", "yellow"),
    "blue": ("purple", "green"),
    "purple": ("blue", "red"),
    "white": ("yellow",),
    "black": ("brown",),
    "brown": ("black", "orange"),
}
WRONG_ANSWERS = {  # an answer -> the wrong answers of a person who does not look well
    **{
        "yes": ("no",),
        "no": ("yes",),
        "left": ("right",),
        "right": ("left",),
        "1": ("2",),
        "2": ("1", "3"),
        "3": ("2",),
    },
    **ALIKE,
    **{
        place: tuple(wrong_place for wrong_place in questions.ON.values() if wrong_place != place)
        for place in questions.ON.values()
    },
    **{kind: tuple(wrong_kind for wrong_kind in SORTS[SORT[kind]] if wrong_kind != kind) for kind in KINDS},
}


class DrawnAnswers(DrawnDataset):
    """Examples of a `SceneAnswers` config, one per question.

    inputs   "image": the scene's name; "question"; "answer": the right answer, for pretraining
    targets  the ten people's answers in the split to evaluate, in other splits the most common answer, or all
    labels   "answers": {answer: its weight}
    facts    question_type (the form of question), answer_type (as in VQA; "unanswerable"), image, the scene's things
    """

    name = "drawn scenes with answers"
    config: SceneAnswers

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        more = (UNANSWERABLE,) if self.config.unanswerable else ()
        return {"answers": (*questions.ANSWERS, *more)}

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        _, scene = plain_scene(config, split, i)
        rng = Random(f"{config.seed}/{split}/{i}/answers")
        rates = questions.acceptance(*config.things(split))
        known = things(scene)
        examples = []
        written = questions.write(rng, scene, config.questions, rates)
        all_answers = [sample_people(rng, question) for question in written]
        if config.unanswerable:
            self._add_unanswerable(written, all_answers, split, i, known)
        for place, (question, answers) in enumerate(zip(written, all_answers, strict=True)):
            kind = UNANSWERABLE if question.answer == UNANSWERABLE else answer_type(question.answer)
            examples.append(
                Example(
                    f"{scene.id}-{place}",
                    {"image": scene.id, "question": question.text, "answer": question.answer},
                    answers if split == config.test_split or config.train_targets == "all" else (question.answer,),
                    {"image": scene.id, "question_type": question.form, "answer_type": kind, "things": known},
                    {"answers": weights(answers)},
                )
            )
        return SceneSet((scene,), tuple(examples))

    def _add_unanswerable(
        self,
        written: list[questions.Question],
        all_answers: list[tuple[str, ...]],
        split: str,
        i: int,
        known: Sequence[Mapping[str, Any]],
    ) -> None:
        """Replace a share of a scene's questions by questions about other scenes, of which something is not there. One
        person of ten gives the answer that is right for the other scene."""
        config = self.config
        rng = Random(f"{config.seed}/{split}/{i}/unanswerable")
        rates = questions.acceptance(*config.things(split))
        for place in range(len(written)):
            replaced = rng.random() < config.unanswerable
            while replaced:
                another = sample(rng, "", *config.things(split))
                question = rng.choice(questions.write(rng, another, config.questions, rates))
                if find_answers(question.text, known).reason == "not there":
                    written[place] = replace(question, answer=UNANSWERABLE)
                    all_answers[place] = (*[UNANSWERABLE] * (PEOPLE - 1), question.answer)
                    break


def sample_people(rng: Random, question: questions.Question) -> tuple[str, ...]:
    """The answers of ten people: nine agree, and one gives a near miss that the question does not name."""
    answers = [question.answer] * PEOPLE
    question_words = question.text[:-1].split()
    answers[rng.randrange(PEOPLE)] = rng.choice(
        [answer for answer in WRONG_ANSWERS[question.answer] if answer not in question_words]
    )
    return tuple(answers)


def answer_type(answer: str) -> str:
    """The type of a drawn question's answer, as VQA calls it."""
    return "yes/no" if answer in ("yes", "no") else "number" if answer in questions.NUMBERS.values() else "other"
