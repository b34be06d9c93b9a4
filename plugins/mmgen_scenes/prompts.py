"""The data set `scene_prompts`: drawn scenes whose questions have prompts: the answer, the thing or the form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from mmgen_vision.box_words import box_in_words
from mmgen_vision.prompts import one_per_prompt

from . import ScenePrompts
from .dataset import DrawnScenes
from .drawn import SceneSet
from .grammar import mentions
from .questions import find_answers


class PromptedScenes(DrawnScenes):
    """Examples of a `ScenePrompts` config.

    inputs   as those of `scenes`
    targets  questions with a single right answer
    labels   "prompt": one per question, if the config gives prompts
    facts    as those of `scenes`; outside of `train_split`, where an example has one prompt (id "test-00003:2"), also
             prompt_kind   "answer", "thing" or "form"
             prompt_value  what the prompt says
    """

    name = "drawn scenes with prompts"
    config: ScenePrompts

    def make(self, split: str, i: int) -> SceneSet:
        scenes, (example,) = super().make(split, i)
        rng = Random(f"{self.config.seed}/{split}/{i}/prompts")
        prompts = {text: self._prompt_of_question(rng, text, example.facts["things"]) for text in example.targets}
        answerable = {text: prompt for text, prompt in prompts.items() if prompt}
        if not answerable:
            return scenes, ()
        prompted = replace(example, targets=tuple(answerable), labels={"prompt": tuple(answerable.values())})
        examples = [prompted] if split == self.config.train_split else [*one_per_prompt([prompted])]
        if not self.config.prompts:
            examples = [replace(example, labels={}) for example in examples]
        return scenes, tuple(examples)

    def _prompt_of_question(self, rng: Random, question: str, things: Sequence[Mapping[str, Any]]) -> str:
        """The prompt of a question; empty for a question without a single right answer."""
        verdict, kind = find_answers(question, things), rng.choice(self.config.about)
        if len(verdict.answers) != 1:
            return ""
        (answer,) = verdict.answers
        values = {
            "answer": answer,
            "form": verdict.form,
            "thing": box_in_words(things[asked_about(question, things)]["box"]),
        }
        return f"{kind}: {values[kind]}"


def asked_about(question: str, things: Sequence[Mapping[str, Any]]) -> int:
    """The position of the thing that a question names first; all things of its kind look alike. -1 without one."""
    return next(
        (place for mention in mentions(question)[:1] for place, thing in enumerate(things) if mention.fits(thing)), -1
    )
