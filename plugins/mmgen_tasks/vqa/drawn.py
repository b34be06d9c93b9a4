"""VQA, drawn: questions about scenes with the answers of ten people."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.drawn import DrawnDataset, SceneSet, plain_scene, things
from mmgen_vl.answers import weights

from mmgen.tensors import Example

from . import drawn_questions as questions

if TYPE_CHECKING:
    from .config import SceneAnswers


class DrawnAnswers(DrawnDataset):
    """Examples of a `SceneAnswers` config, one per question.

    inputs   "image": the scene's name; "question"; "answer": the right answer, for pretraining
    targets  the ten people's answers in the split to evaluate, in other splits the most common answer, or all
    labels   "answers": {answer: its weight}
    facts    question_type (the form of question), answer_type (as in VQA), image and the scene's things
    """

    name = "drawn scenes with answers"
    config: SceneAnswers

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return {"answers": questions.ANSWERS}

    def make(self, split: str, i: int) -> SceneSet:
        config = self.config
        _, scene = plain_scene(config, split, i)
        rng = Random(f"{config.seed}/{split}/{i}/answers")
        rates = questions.acceptance(*config.things(split))
        known = things(scene)
        examples = []
        for place, question in enumerate(questions.write(rng, scene, config.questions, rates)):
            answers = questions.sample_people(rng, question)
            kind = questions.answer_type(question.answer)
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
