"""First-party objectives: what an encoder learns beside writing, as BERT, VisualBERT and VL-BERT were pretrained."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

import mmgen

from .auxiliary import RegionClasses

Share = Annotated[float, Field(ge=0, le=1)]


class MaskedWords(mmgen.ObjectiveConfig):
    """Words of texts are hidden and predicted, all other inputs visible (Devlin et al., 2019, section 3.1; VisualBERT,
    section 3.3)."""

    type: Literal["masked_words"] = "masked_words"
    inputs: tuple[str, ...] = Field((), description="the texts that it hides; by default every text input of the step")
    rate: float = Field(0.15, gt=0, le=1, description="share of the words that are predicted")
    mask: Share = Field(0.8, description="of those, the share that [MASK] stands for")
    random: Share = Field(0.1, description="and the share that a random word stands for; the rest is shown as it is")
    whole_words: bool = Field(False, description="hide all pieces of a word, or none")

    def build(self, backbone, labels):
        from .masked_words import MaskedWordsObjective

        return MaskedWordsObjective(self)

    def hidden(self, inputs):
        texts = tuple(name for name, config in inputs.items() if config.hides == "words")
        return tuple(name for name in texts if name in self.inputs) if self.inputs else texts

    def misfits(self, inputs):
        if absent := [name for name in self.inputs if name not in inputs]:
            return f"hides words of '{absent[0]}', and the step reads: {', '.join(inputs)}"
        if wrong := [name for name in self.inputs if inputs[name].hides != "words"]:
            return f"hides words, and the input '{wrong[0]}' has none; name inputs of texts"
        if not self.hidden(inputs):
            return 'hides words, and the step reads no text; add an input of type "text" to it'
        return ""

    @model_validator(mode="after")
    def _shares(self):
        if self.mask + self.random > 1:
            raise ValueError("mask and random are shares of the same words, and together they are more than 1")
        return self


class SentenceImage(mmgen.ObjectiveConfig):
    """Whether a second caption is of the same picture as the first; half of them are another picture's (VisualBERT,
    section 3.3)."""

    type: Literal["sentence_image"] = "sentence_image"
    pools = True
    makes_rows = True

    caption: str = Field("caption", description="the field of an example that has its captions")
    second: str = Field("second", description="the field that the second caption is put into")
    other: float = Field(0.5, gt=0, lt=1, description="share of the second captions that are another picture's")

    def build(self, backbone, labels):
        from .sentence_image import SentenceImageObjective

        return SentenceImageObjective(self, backbone)

    def fills(self):
        return (self.second,)

    def misfits(self, inputs):
        for field in (self.caption, self.second):
            if not any(field in config.reads for config in inputs.values()):
                return f'needs an input that reads \'{field}\'; add one of type "text" with reads = ["{field}"]'
        return ""


class MaskedRegions(mmgen.ObjectiveConfig):
    """Regions of a picture are hidden, and the classes that a detector took them for are predicted, all texts visible:
    soft cross-entropy to the detector's distribution (VL-BERT, section 3.3)."""

    type: Literal["masked_regions"] = "masked_regions"
    lends = True

    input: str = Field("image", description="the input whose regions it hides; its store tells their classes")
    rate: float = Field(0.15, gt=0, le=1, description="share of the regions that are predicted")
    mask: Share = Field(0.9, description="of those, the share that is hidden; the rest is shown as it is")

    def build(self, backbone, labels):
        from .masked_regions import MaskedRegionsObjective

        return MaskedRegionsObjective(self, backbone, labels.get(f"{self.input}.classes"))

    def hidden(self, inputs):
        return (self.input,) if self.input in inputs and inputs[self.input].hides == "regions" else ()

    def misfits(self, inputs):
        if self.input not in inputs:
            return f"hides regions of '{self.input}', and the step reads: {', '.join(inputs)}"
        if not self.hidden(inputs):
            return (
                f"hides regions, and '{self.input}', of type '{inputs[self.input].type}', has none that can be hidden; "
                'name an input of type "regions" or "vlbert_regions"'
            )
        return ""


@mmgen.hookimpl
def register_objectives():
    return [MaskedWords, SentenceImage, MaskedRegions, RegionClasses]
