"""Configs of drawn scenes: a small world of pictures, captions and questions, to run everything without downloads."""

from typing import ClassVar, Literal

from pydantic import Field

import mmgen

from .configs import Drawn
from .tasks import SceneAnswers, SceneChoices, SceneExpressions, ScenePairs, ScenePhrases, SceneStatements


class Scenes(Drawn):
    """Scenes of a few things each, in the style of VQA 1.0's abstract scenes; made from the seed alone.

    Unless `captions_about` says otherwise, all captions of a scene are about the same two groups of things. Questions
    are about all groups, so that about half of them are about something that no caption mentions.
    """

    type: Literal["scenes"] = "scenes"
    captions: int = Field(5, ge=1, le=10, description="captions per scene; evaluation uses the first")
    captions_about: Literal["same", "others"] = Field(
        "same",
        description="same: all captions are about the same two groups of things; others: those after the first are "
        "about groups that the first does not name, so that only the picture says whether a second caption fits",
    )
    questions: int = Field(4, ge=3, le=6, description="questions per scene")

    def build(self):
        from .dataset import DrawnScenes

        return DrawnScenes(self)


class Discovery(mmgen.MetricConfig):
    """Relevance and discovery of questions about drawn scenes, in percent, from the words alone.

    A question is relevant if it names something and the scene has everything it names, with the properties given; it
    discovers if it is relevant and names a thing that the first caption does not mention.
    """

    type: Literal["discovery"] = "discovery"

    def build(self):
        from .metric import DiscoveryMetric

        return DiscoveryMetric()


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
        from .prompts import PromptedScenes

        return PromptedScenes(self)


class Obedience(mmgen.MetricConfig):
    """Whether generated questions are those that their prompts ask for, in percent, from the words alone.

    It judges prompts about the answer, the thing or the form of a question about a drawn scene, and VQA's types of
    questions ("question type: how many").
    """

    type: Literal["obedience"] = "obedience"
    judges: ClassVar = frozenset({"text"})

    def build(self):
        from .obedience import ObedienceMetric

        return ObedienceMetric()


@mmgen.hookimpl
def register_datasets():
    tasks = [SceneAnswers, SceneExpressions, ScenePairs, SceneStatements, ScenePhrases, SceneChoices]
    return [Scenes, ScenePrompts, *tasks]


@mmgen.hookimpl
def register_metrics():
    return [Discovery, Obedience]
