"""Objectives of BERT, VisualBERT and VL-BERT, which can be combined with text generation: masked words and regions.

The objectives of tasks are in `tasks`.
"""

from typing import Annotated, Literal

from pydantic import Field, model_validator

import mmgen

from .tasks import (
    AnswerClasses,
    MultipleChoice,
    PhraseRegions,
    RankedAnswers,
    RankedChoices,
    RegionChoice,
    RegionClasses,
    SentenceImage,
    TextAssignment,
    TrueOrFalse,
)

Share = Annotated[float, Field(ge=0, le=1)]


class MaskedWords(mmgen.ObjectiveConfig):
    """Masked language modelling: words of texts are hidden and predicted, all other inputs are visible (Devlin et al.,
    2019, section 3.1; VisualBERT, section 3.3)."""

    type: Literal["masked_words"] = "masked_words"
    inputs: tuple[str, ...] = Field(
        (), description="text inputs with hidden words; by default every text input of the step"
    )
    mlm_probability: float = Field(0.15, gt=0, le=1, description="share of the words that are predicted")
    mask_replace_prob: Share = Field(0.8, description="of those, the share replaced by [MASK]")
    random_replace_prob: Share = Field(
        0.1, description="of those, the share replaced by a random word; the rest stays unchanged"
    )
    whole_word_mask: bool = Field(False, description="hide all word pieces of a word, or none of them")

    def build(self, backbone, vocabularies):
        from .masked_words import MaskedWordsObjective

        return MaskedWordsObjective(self)

    def hidden(self, inputs):
        texts = tuple(name for name, config in inputs.items() if config.hides == "words")
        return tuple(name for name in texts if name in self.inputs) if self.inputs else texts

    def errors(self, inputs):
        if absent := [name for name in self.inputs if name not in inputs]:
            return f"hides words of '{absent[0]}', but the step reads: {', '.join(inputs)}"
        if wrong := [name for name in self.inputs if inputs[name].hides != "words"]:
            return f"hides words, but the input '{wrong[0]}' has no words; name text inputs"
        if not self.hidden(inputs):
            return 'hides words, but the step reads no text; add an input of type "text" to the step'
        return ""

    @model_validator(mode="after")
    def _shares(self):
        if self.mask_replace_prob + self.random_replace_prob > 1:
            raise ValueError(
                "mask_replace_prob + random_replace_prob must be at most 1, because both are shares of the same words"
            )
        return self


class MaskedRegions(mmgen.ObjectiveConfig):
    """Masked region classification: regions of a picture are hidden and their detector's classes are predicted, all
    texts are visible; soft cross-entropy to the detector's distribution (VL-BERT, section 3.3)."""

    type: Literal["masked_regions"] = "masked_regions"
    exports_weights = True

    input: str = Field("image", description="input with hidden regions; its store has their classes")
    mask_probability: float = Field(0.15, gt=0, le=1, description="share of the regions that are predicted")
    mask_replace_prob: Share = Field(0.9, description="of those, the share that is hidden; the rest stays unchanged")

    def build(self, backbone, vocabularies):
        from .masked_regions import MaskedRegionsObjective

        return MaskedRegionsObjective(self, backbone, vocabularies.get(f"{self.input}.classes"))

    def hidden(self, inputs):
        return (self.input,) if self.input in inputs and inputs[self.input].hides == "regions" else ()

    def errors(self, inputs):
        if self.input not in inputs:
            return f"hides regions of '{self.input}', but the step reads: {', '.join(inputs)}"
        if not self.hidden(inputs):
            return (
                f"hides regions, but the input '{self.input}' of type '{inputs[self.input].type}' has no regions to "
                'hide; name an input of type "regions" or "vlbert_regions"'
            )
        return ""


@mmgen.hookimpl
def register_objectives():
    masked = [MaskedWords, MaskedRegions, RegionClasses]
    heads = [AnswerClasses, TrueOrFalse, TextAssignment, SentenceImage, MultipleChoice, RegionChoice, PhraseRegions]
    return [*masked, *heads, RankedAnswers, RankedChoices]
