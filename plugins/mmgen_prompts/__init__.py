"""Configs of questions for a purpose: drawn scenes whose questions have prompts, and the metric of obedience."""

from typing import ClassVar, Literal

from mmgen_scenes import Scenes
from pydantic import Field

import mmgen

Kind = Literal["answer", "thing", "form"]


class ScenePrompts(Scenes):
    """Drawn scenes with a prompt per question: its answer, the box of the thing it asks about, or its form.

    The prompts are "answer: red", "thing: left2 top4 right3 bottom6" (a box in tenths of the picture's sides) and
    "form: how many". Questions without a single right answer are left out.
    """

    type: Literal["scene_prompts"] = "scene_prompts"  # type: ignore[assignment]

    questions: int = Field(6, ge=3, le=6, description="questions written per scene, before some are left out")
    about: tuple[Kind, ...] = Field(
        ("answer", "thing", "form"), min_length=1, description="kinds of prompts; one is drawn for each question"
    )
    prompts: bool = Field(
        True,
        description="whether a model is given the prompts; with false, the examples are the same, for a baseline that "
        "does not know what it is asked for",
    )

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return ("prompt",) if self.prompts else ()

    def build(self):
        from .dataset import PromptedScenes

        return PromptedScenes(self)


class Obedience(mmgen.MetricConfig):
    """Whether generated questions are those that their prompts ask for, in percent, from the words alone.

    It judges prompts about the answer, the thing or the form of a question about a drawn scene, and VQA's types of
    questions ("question type: how many").
    """

    type: Literal["obedience"] = "obedience"
    judges: ClassVar = frozenset({"text"})

    def build(self):
        from .metric import ObedienceMetric

        return ObedienceMetric()


@mmgen.hookimpl
def register_datasets():
    return [ScenePrompts]


@mmgen.hookimpl
def register_metrics():
    return [Obedience]
