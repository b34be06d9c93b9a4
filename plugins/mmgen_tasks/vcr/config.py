"""Configs of VCR: data sets, objective, metric, cards, and the drawn data set `scene_choices`.

The recipe keys of its data sets, its objective and its metric."""

from typing import ClassVar, Literal

from mmgen_scenes import Drawn
from mmgen_vision.configs import By, Dropout, FileEach
from pydantic import Field

import mmgen

FORMS = ("looking", "going", "next to", "color", "side")  # of drawn questions


class Vcr(FileEach):
    """VCR: which of four answers is right, and which of four rationales. `images` is the folder vcr1images, with the
    metadata beside the pictures."""

    type: Literal["vcr"] = "vcr"
    labels: ClassVar[tuple[str, ...]] = ("choices", "choice_mentions", "choice", "objects")

    test_split: str = Field("val", description="the split that every step predicts and is scored on")
    subtask: Literal["answer", "rationale", "both", "every"] = Field(
        "both",
        description="answers; rationales of the right answer; both; or, for the leaderboard, also the rationales of "
        "each of the four answers",
    )

    def build(self):
        from .files import VcrFiles

        return VcrFiles(self)


class VcrTexts(Vcr):
    """VCR's texts with one choice per example, right or wrong, as VisualBERT is pretrained on them: a question and one
    of its choices."""

    type: Literal["vcr_texts"] = "vcr_texts"  # type: ignore[assignment]
    labels: ClassVar[tuple[str, ...]] = ("truth",)

    def build(self):
        from .files import VcrTextFiles

        return VcrTextFiles(self)


class MultipleChoice(mmgen.ObjectiveConfig):
    """Which of several texts is the answer (VCR): one row per choice, with one logit from its pooled state.

    The defaults are VisualBERT's: softmax over an example's choices. VL-BERT uses loss = "bce".
    """

    type: Literal["multiple_choice"] = "multiple_choice"
    gives = "choice"
    required_labels = ("choices", "choice")
    query_labels = ("choices",)
    makes_rows = True
    pools = True

    choice: str = Field("choice", description="the field of an example that holds one choice in each row")
    loss: Literal["softmax", "bce"] = Field(
        "softmax", description="softmax: the choices against each other; bce: every choice separately"
    )
    dropout: float = Dropout

    def build(self, backbone, vocabularies):
        from .objective import MultipleChoiceObjective

        return MultipleChoiceObjective(self, backbone)

    def provides(self):
        return (self.choice, f"{self.choice}_mentions")

    def errors(self, inputs):
        if not any(self.choice in config.fields for config in inputs.values()):
            return (
                f'needs an input that reads \'{self.choice}\'; add one of type "text" with fields = ["{self.choice}"]'
            )
        return ""


class ChoiceAccuracy(mmgen.MetricConfig):
    """VCR's accuracies in percent: answers (Q->A), rationales (QA->R), and both (Q->AR) (Zellers et al., 2019); for
    choices of other data, accuracy."""

    type: Literal["choice_accuracy"] = "choice_accuracy"
    judges = frozenset({"choice"})
    required_labels = ("choice",)

    by: tuple[str, ...] = By

    @classmethod
    def result_files(cls):
        from .results import VcrResults

        return VcrResults()

    def build(self):
        from .metric import ChoiceAccuracyMetric

        return ChoiceAccuracyMetric(self.by)


class SceneChoices(Drawn):
    """Questions about drawn scenes with four answers, and four rationales for the right one: VCR, drawn.

    Wrong choices fit the scene's things. Naive Bayes trained on the words of 4,000 scenes alone is right 30 times in
    100 about answers and 25 times about rationales; chance is 25.
    """

    type: Literal["scene_choices"] = "scene_choices"
    labels: ClassVar[tuple[str, ...]] = ("choices", "choice_mentions", "choice", "objects")
    min_things: int = Field(6, ge=6, le=7, description="fewest things in a scene")
    max_things: int = Field(7, ge=6, le=7, description="most things in a scene")
    num_questions: int = Field(2, ge=1, le=2, description="questions per scene")
    subtask: Literal["answer", "rationale", "both", "every"] = Field(
        "both",
        description="answers; rationales of the right answer; both; or, for VCR's leaderboard, also the rationales of "
        "each of the four answers",
    )
    tags: Literal["kinds", "names"] = Field(
        "kinds",
        description="texts name things by their kinds; or, as for people in VCR, by arbitrary names, so that only the "
        "mentions identify the thing",
    )
    forms: tuple[Literal[FORMS], ...] = Field(  # type: ignore[valid-type]
        (),
        description="questions of these forms only, about the same pictures, at most num_questions per scene; empty "
        "for all five",
    )

    def build(self):
        from .drawn import DrawnChoices

        return DrawnChoices(self)


class Choices(mmgen.RendererConfig):
    """VCR: the choices, which of them is right, and the words that name objects of the picture."""

    type: Literal["vcr_card"] = "vcr_card"
    renders = frozenset({"choice"})
    required_labels = ("choices", "choice")

    def build(self):
        from .card import ChoiceCard

        return ChoiceCard()


class NamedTexts(mmgen.RendererConfig):
    """VCR's texts: the words that name objects, for a step that generates text or classifies choices."""

    type: Literal["vcr_texts_card"] = "vcr_texts_card"
    renders = frozenset({"text", "label"})
    datasets = ("vcr", "vcr_texts", "scene_choices")

    def build(self):
        from .card import NamedTextsCard

        return NamedTextsCard()
