"""Configs of losses that stand beside a task's own."""

from typing import Literal

from mmgen_vl.configs import without_regions
from pydantic import Field

import mmgen


class RegionClasses(mmgen.ObjectiveConfig):
    """What the objects of a picture are, told by their regions' last states, all texts visible and no region hidden:
    the loss that VL-BERT learns VCR with beside the choice (section 4.2 of its paper). It predicts nothing.

    The first class is the background, which the whole picture is, and every region that is no object.
    """

    type: Literal["region_classes"] = "region_classes"
    labels = ("objects",)

    input: str = Field("image", description="the input whose regions are classified: first the objects, in their order")
    first_object: int = Field(
        0, ge=0, description="which region the first object is; a whole picture that VL-BERT puts in front is none"
    )
    begins_as: str = Field(
        "", description="the masked_regions objective whose hidden layer this one begins with, as in VL-BERT's code"
    )
    dropout: float = Field(0.0, ge=0, lt=1, description="behind the hidden layer, while learning")

    def build(self, backbone, labels):
        from .region_classes import RegionClassesObjective

        return RegionClassesObjective(self, backbone, labels.get("objects"))

    def misfits(self, inputs):
        return without_regions(self.input, inputs, "classifies")
