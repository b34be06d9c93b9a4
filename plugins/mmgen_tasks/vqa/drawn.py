"""VQA, drawn: questions about scenes with the answers of ten people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

from mmgen_scenes.answering import find_answers
from mmgen_scenes.drawn import DrawnDataset, SceneSet, plain_scene, things
from mmgen_scenes.world import sample
from mmgen_vl.answers import weights

from mmgen.tensors import Example

from . import drawn_questions as questions

if TYPE_CHECKING:
    from .config import SceneAnswers

UNANSWERABLE = "unanswerable"


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
        all_answers = [questions.sample_people(rng, question) for question in written]
        if config.unanswerable:
            self._add_unanswerable(written, all_answers, split, i, known)
        for place, (question, answers) in enumerate(zip(written, all_answers, strict=True)):
            kind = UNANSWERABLE if question.answer == UNANSWERABLE else questions.answer_type(question.answer)
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
                    all_answers[place] = (*[UNANSWERABLE] * (questions.PEOPLE - 1), question.answer)
                    break
