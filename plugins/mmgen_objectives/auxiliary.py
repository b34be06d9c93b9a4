"""The config of `region_classes`, an auxiliary loss that is added to a task's loss."""

from typing import Literal

from mmgen_vision.configs import without_regions
from pydantic import Field

import mmgen


class RegionClasses(mmgen.ObjectiveConfig):
    """Classifies a picture's objects from their regions' last states, with all texts and regions visible: VL-BERT's
    auxiliary loss on VCR (section 4.2 of its paper). It makes no predictions.

    The first class is the background: the whole picture, and every region that is not an object.
    """

    type: Literal["region_classes"] = "region_classes"
    required_labels = ("objects",)

    input: str = Field("image", description="input with the classified regions: first the objects, in order")
    first_object: int = Field(
        0, ge=0, description="index of the first object's region, not counting the whole picture that VL-BERT adds"
    )
    init_from: str = Field(
        "", description="masked_regions objective whose hidden layer initialises this one, as in VL-BERT's code"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="dropout after the hidden layer, in training")

    def build(self, backbone, vocabularies):
        from .region_classes import RegionClassesObjective

        return RegionClassesObjective(self, backbone, vocabularies.get("objects"))

    def errors(self, inputs):
        return without_regions(self.input, inputs, "classifies")
