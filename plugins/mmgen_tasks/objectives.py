"""Configs of the objectives: what each learns, and the settings in which VisualBERT and VL-BERT differ."""

from typing import Literal

from pydantic import Field, model_validator

import mmgen

Dropout = Field(0.1, ge=0, lt=1, description="on what the last layer of the head reads, while learning")


class AnswerClasses(mmgen.ObjectiveConfig):
    """Which of the known answers is given to a question (VQA): a logit an answer, of the state at the [MASK] behind the
    question, against how many people gave it.

    As it is, VisualBERT's (Kullback-Leibler). VL-BERT's has loss = "bce" and transform = true.
    """

    type: Literal["answer_classes"] = "answer_classes"
    gives = "label"
    labels = ("answers",)

    question: str = Field("question", description="the input whose last slot answers: a text with append_mask = true")
    loss: Literal["kl", "bce"] = Field(
        "kl",
        description="kl: one distribution over all answers; bce: each answer by itself, summed over the answers",
    )
    transform: bool = Field(
        False, description="the head begins with a copy of what stands before the words of the masked-LM head"
    )
    dropout: float = Dropout
    told: int = Field(10, ge=1, description="how many answers a prediction tells the probabilities of")

    def build(self, backbone, labels):
        from .answer_classes import AnswerClassesObjective

        return AnswerClassesObjective(self, backbone, labels["answers"])

    def misfits(self, inputs):
        if not getattr(inputs.get(self.question), "append_mask", False):
            return f"reads the [MASK] behind '{self.question}'; the step needs such an input with append_mask = true"
        return ""


class TrueOrFalse(mmgen.ObjectiveConfig):
    """Whether a statement is true of a picture or of several (NLVR2; VisualBERT, section 4.3): two logits of the pooled
    state, cross-entropy."""

    type: Literal["true_or_false"] = "true_or_false"
    gives = "label"
    labels = ("truth",)
    pools = True

    dropout: float = Dropout

    def build(self, backbone, labels):
        from .true_or_false import TrueOrFalseObjective

        return TrueOrFalseObjective(self, backbone)


class MultipleChoice(mmgen.ObjectiveConfig):
    """Which of several texts answers (VCR): a row a choice, one logit of its pooled state each.

    As it is, VisualBERT's: softmax over an example's choices. VL-BERT's has loss = "bce".
    """

    type: Literal["multiple_choice"] = "multiple_choice"
    gives = "choice"
    labels = ("choices", "choice")
    makes_rows = True
    pools = True

    choice: str = Field("choice", description="the field of an example that each of the choices is put into")
    loss: Literal["softmax", "bce"] = Field(
        "softmax", description="softmax: the choices against each other; bce: each choice by itself"
    )
    dropout: float = Dropout

    def build(self, backbone, labels):
        from .multiple_choice import MultipleChoiceObjective

        return MultipleChoiceObjective(self, backbone)

    def fills(self):
        return (self.choice, f"{self.choice}_mentions")

    def misfits(self, inputs):
        if not any(self.choice in config.reads for config in inputs.values()):
            return f'needs an input that reads \'{self.choice}\'; add one of type "text" with reads = ["{self.choice}"]'
        return ""


class RegionChoice(mmgen.ObjectiveConfig):
    """Which region an expression speaks of (RefCOCO+; VL-BERT, section 4.2): a logit a region, of its own state. Those
    that overlap the right box by an IoU of .5 or more are right."""

    type: Literal["region_choice"] = "region_choice"
    gives = "region"
    labels = ("box",)

    image: str = Field("image", description="the input whose regions there are to choose from")
    loss: Literal["bce", "softmax"] = Field(
        "bce", description="bce: each region by itself, a mean over regions; softmax: all right ones against the others"
    )
    transform: bool = Field(True, description="the head has a hidden layer, as wide as the states")
    begins_as: str = Field(
        "", description="the masked_regions objective whose hidden layer this one begins with, as in VL-BERT's code"
    )
    whole: bool = Field(
        False,
        description="the whole picture, which VL-BERT has in front of its regions, may be chosen too, as in its code",
    )
    dropout: float = Dropout

    @model_validator(mode="after")
    def _hidden(self):
        if self.begins_as and not self.transform:
            raise ValueError("begins_as is about the hidden layer, and transform = false leaves that out; drop one")
        return self

    def build(self, backbone, labels):
        from .region_choice import RegionChoiceObjective

        return RegionChoiceObjective(self, backbone)

    def misfits(self, inputs):
        return _without_regions(self.image, inputs)


class PhraseRegions(mmgen.ObjectiveConfig):
    """Which regions the phrases of a caption speak of (Flickr30K Entities; VisualBERT, section 4.4): one head of
    attention, from the last word piece of a phrase to the regions. It learns to spread evenly over those that overlap
    the phrase's box by an IoU of .5 or more."""

    type: Literal["phrase_regions"] = "phrase_regions"
    gives = "boxes"
    labels = ("phrases",)

    caption: str = Field("caption", description="the input that has the phrases")
    image: str = Field("image", description="the input whose regions there are to choose from")
    width: int = Field(64, ge=1, description="of the queries and keys; BERT's heads are 64 wide")

    def build(self, backbone, labels):
        from .phrase_regions import PhraseRegionsObjective

        return PhraseRegionsObjective(self, backbone)

    def misfits(self, inputs):
        if self.caption not in inputs or inputs[self.caption].hides != "words":
            return f"reads phrases of '{self.caption}'; the step needs such an input of type \"text\""
        if inputs[self.caption].reads != (self.caption,):
            return (
                f"reads phrases of '{self.caption}', and that input reads '{inputs[self.caption].reads[0]}'; call the "
                "input as the field is called"
            )
        if getattr(inputs[self.caption], "append_mask", False):
            return f"reads phrases of '{self.caption}', which must end in its own words; give it append_mask = false"
        return _without_regions(self.image, inputs)


def _without_regions(name, inputs):
    """What is wrong where the input `name` has no regions to choose from; empty where it has."""
    if isinstance(inputs.get(name), mmgen.FeaturesConfig):
        return ""
    return f"chooses among the regions of '{name}'; the step needs such an input of type \"regions\""
