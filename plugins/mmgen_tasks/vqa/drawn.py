"""VQA, drawn: questions about scenes with what ten people answer."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random
from typing import TYPE_CHECKING

from mmgen_scenes.drawn import DrawnDataset, Made, plain_scene, things
from mmgen_vl.answers import weights

from mmgen.tensors import Example

from . import drawn_questions as questions

if TYPE_CHECKING:
    from .config import SceneAnswers


class DrawnAnswers(DrawnDataset):
    """Examples of a `SceneAnswers` config, a question each.

    inputs   "image": the scene's name; "question"; "answer": the right one, for pretraining
    targets  in the split to evaluate what ten people answer, in others the most common answer, or all
    labels   "answers": {answer: its weight}
    facts    question_type (the form of question), answer_type (as in VQA), image and the scene's things
    """

    name = "drawn scenes with answers"
    config: SceneAnswers

    def labels(self) -> Mapping[str, tuple[str, ...]]:
        return {"answers": questions.ANSWERS}

    def make(self, split: str, i: int) -> Made:
        config = self.config
        _, scene = plain_scene(config, split, i)
        rng = Random(f"{config.seed}/{split}/{i}/answers")
        kept = questions.acceptance(config.min_things, config.max_things)
        known = things(scene)
        examples = []
        for place, question in enumerate(questions.write(rng, scene, config.questions, kept)):
            given = questions.people(rng, question)
            kind = questions.answer_type(question.answer)
            examples.append(
                Example(
                    f"{scene.id}-{place}",
                    {"image": scene.id, "question": question.text, "answer": question.answer},
                    given if split == config.test_split or config.train_targets == "all" else (question.answer,),
                    {"image": scene.id, "question_type": question.form, "answer_type": kind, "things": known},
                    {"answers": weights(given)},
                )
            )
        return Made((scene,), tuple(examples))
