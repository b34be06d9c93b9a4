"""Configs of the objectives of tasks: answers, statements, captions, choices, regions, phrases, region classes."""

from typing import Annotated, Literal

from mmgen_vision.configs import Dropout, without_regions
from pydantic import Field, model_validator

import mmgen

Arrangement = Annotated[
    Literal["row", "rows"],
    Field(
        description="row: the regions of both pictures in one row, as in VisualBERT; rows: a row for each, and a head "
        "over both"
    ),
]
Pictures = Field("image", description="the field of an example that holds its pictures")


class AnswerClasses(mmgen.ObjectiveConfig):
    """Classifies a question by its answer (VQA): one logit per answer of the vocabulary, from the state at the [MASK]
    after the question, trained on the share of people who gave the answer.

    The defaults are VisualBERT's (Kullback-Leibler). VL-BERT uses loss = "bce" and transform = true.
    """

    type: Literal["answer_classes"] = "answer_classes"
    gives = "label"
    required_labels = ("answers",)

    question: str = Field(
        "question", description="the input whose last slot predicts the answer: a text with append_mask = true"
    )
    loss: Literal["kl", "bce"] = Field(
        "kl",
        description="kl: one distribution over all answers; bce: every answer separately, summed over the answers",
    )
    transform: bool = Field(False, description="the head begins with a copy of the masked-LM head's transform")
    dropout: float = Dropout

    def build(self, backbone, vocabularies):
        from .answers import AnswerClassesObjective

        return AnswerClassesObjective(self, backbone, vocabularies["answers"])

    def errors(self, inputs):
        if not getattr(inputs.get(self.question), "append_mask", False):
            return f"needs a [MASK] after '{self.question}'; give the step that input with append_mask = true"
        return ""


class TrueOrFalse(mmgen.ObjectiveConfig):
    """Whether a statement is true of one or more pictures (NLVR2; VisualBERT, section 4.3): two logits of the pooled
    state, cross-entropy.

    With arrangement = "rows" the statement stands in two rows, one for each of two pictures, and a head with a hidden
    layer reads both pooled states (LXMERT, section 3.3 of Tan and Bansal, 2019; MMF's VisualBERT for NLVR2).
    """

    type: Literal["true_or_false"] = "true_or_false"
    gives = "label"
    required_labels = ("truth",)
    pools = True

    arrangement: Arrangement = "row"
    pictures: str = Pictures
    dropout: float = Dropout

    @property
    def makes_rows(self):  # type: ignore[override]
        return self.arrangement == "rows"

    def build(self, backbone, vocabularies):
        from .statements import TrueOrFalseObjective

        return TrueOrFalseObjective(self, backbone)


class TextAssignment(mmgen.ObjectiveConfig):
    """Which of two pictures a caption belongs to: the first, the second, or neither, each a third of the time (ALBEF,
    section 3.5 of Li et al., 2021, which trains it before NLVR2). The other pictures are those of random examples."""

    type: Literal["text_assignment"] = "text_assignment"
    makes_rows = True
    pools = True

    arrangement: Arrangement = "row"
    pictures: str = Pictures
    caption: str = Field("caption", description="the field with the captions of a picture, one of which is drawn")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the input of the head's last layer during training")

    def build(self, backbone, vocabularies):
        from .statements import TextAssignmentObjective

        return TextAssignmentObjective(self, backbone)


class SentenceImage(mmgen.ObjectiveConfig):
    """Predicts whether two captions belong to the same picture; half of the second captions come from another picture
    (VisualBERT, section 3.3)."""

    type: Literal["sentence_image"] = "sentence_image"
    pools = True
    makes_rows = True

    caption: str = Field("caption", description="field of an example with its captions")
    second: str = Field("second", description="field for the second caption")
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout on the input of the head's last layer during training")

    def build(self, backbone, vocabularies):
        from .statements import SentenceImageObjective

        return SentenceImageObjective(self, backbone)

    def provides(self):
        return (self.second,)

    def errors(self, inputs):
        return _without_reader(self.caption, inputs) or _without_reader(self.second, inputs)


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
        from .choices import MultipleChoiceObjective

        return MultipleChoiceObjective(self, backbone)

    def provides(self):
        return (self.choice, f"{self.choice}_mentions")

    def errors(self, inputs):
        return _without_reader(self.choice, inputs)


class RankedChoices(mmgen.ObjectiveConfig):
    """Which of several texts is the answer (VCR), without a head: the one that the recipe's generator writes with the
    highest probability. The loss is minus the log-probability of the right one."""

    type: Literal["ranked_choices"] = "ranked_choices"
    gives = "choice"
    required_labels = ("choices", "choice")
    query_labels = ("choices",)
    asks_generator = True

    def build(self, backbone, vocabularies):
        from .ranking import RankingObjective

        return RankingObjective()


class RankedAnswers(mmgen.ObjectiveConfig):
    """As `ranked_choices`, among all answers of the vocabulary (VQA). The loss is that of the generator."""

    type: Literal["ranked_answers"] = "ranked_answers"
    gives = "label"
    required_labels = ("answers",)
    asks_generator = True

    def build(self, backbone, vocabularies):
        from .ranking import RankingObjective

        return RankingObjective(vocabularies["answers"])


class RegionChoice(mmgen.ObjectiveConfig):
    """Which region an expression refers to (RefCOCO+; VL-BERT, section 4.2): one logit per region, from the region's
    state. Regions that overlap the right box by an IoU of .5 or more are right."""

    type: Literal["region_choice"] = "region_choice"
    gives = "region"
    required_labels = ("box",)

    image: str = Field("image", description="the input whose regions are the candidates")
    loss: Literal["bce", "softmax"] = Field(
        "bce", description="bce: every region alone, a mean over regions; softmax: all right regions against the rest"
    )
    transform: bool = Field(True, description="add a hidden layer of the states' width to the head")
    init_from: str = Field(
        "", description="the masked_regions objective whose hidden layer initialises this one, as in VL-BERT's code"
    )
    whole_image: bool = Field(
        False,
        description="the whole picture, VL-BERT's first region, may be chosen too, as in VL-BERT's code",
    )
    dropout: float = Dropout

    @model_validator(mode="after")
    def _hidden(self):
        if self.init_from and not self.transform:
            raise ValueError(
                "init_from initialises the hidden layer, but transform = false removes that layer; remove one of them"
            )
        return self

    def build(self, backbone, vocabularies):
        from .regions import RegionChoiceObjective

        return RegionChoiceObjective(self, backbone)

    def errors(self, inputs):
        return without_regions(self.image, inputs)


class PhraseRegions(mmgen.ObjectiveConfig):
    """Which regions a caption's phrases refer to (Flickr30K Entities; VisualBERT, section 4.4): one attention head,
    from the last word piece of a phrase to the regions. The target is uniform over the regions that overlap the
    phrase's box by an IoU of .5 or more."""

    type: Literal["phrase_regions"] = "phrase_regions"
    gives = "boxes"
    required_labels = ("phrases",)
    query_labels = ("phrases",)

    caption: str = Field("caption", description="the input with the phrases")
    image: str = Field("image", description="the input whose regions are the candidates")
    width: int = Field(64, ge=1, description="width of the queries and keys; BERT's heads have 64")

    def build(self, backbone, vocabularies):
        from .phrases import PhraseRegionsObjective

        return PhraseRegionsObjective(self, backbone)

    def errors(self, inputs):
        text = inputs.get(self.caption)
        plain = text is not None and text.hides == "words" and text.fields == (self.caption,)
        if not plain or getattr(text, "append_mask", False):
            return (
                f"needs the phrases of '{self.caption}'; give the step an input '{self.caption}' of type \"text\" that "
                "reads the field of this name, without append_mask"
            )
        return without_regions(self.image, inputs)


class RegionClasses(mmgen.ObjectiveConfig):
    """Classifies a picture's objects from their regions' last states, with all texts and regions visible: VL-BERT's
    auxiliary loss on VCR (section 4.2 of its paper). It makes no predictions.

    The first class is the background: the whole picture, and every region that is not an object.
    """

    type: Literal["region_classes"] = "region_classes"
    required_labels = ("objects",)

    input: str = Field("image", description="input with the classified regions: first the objects, in order")
    init_from: str = Field(
        "", description="masked_regions objective whose hidden layer initialises this one, as in VL-BERT's code"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout after the hidden layer, in training")

    def build(self, backbone, vocabularies):
        from .region_classes import RegionClassesObjective

        return RegionClassesObjective(self, backbone, vocabularies.get("objects"))

    def errors(self, inputs):
        return without_regions(self.input, inputs, "classifies")


def _without_reader(field, inputs):
    """The error message if no input of a step reads a field; else ""."""
    if any(field in config.fields for config in inputs.values()):
        return ""
    return f'needs an input that reads \'{field}\'; add one of type "text" with fields = ["{field}"]'
