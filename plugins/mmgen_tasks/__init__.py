"""The tasks that VisualBERT and VL-BERT are judged by: VQA, NLVR2, VCR, referring expressions and Flickr30K Entities.
For each: objectives, data sets in the published formats, and the official metrics."""

from typing import Literal

from pydantic import Field

import mmgen


class TrueOrFalse(mmgen.ObjectiveConfig):
    """Whether a statement is true of a picture or of several (NLVR2; VisualBERT, section 4.3): two logits of the pooled
    state, cross-entropy."""

    type: Literal["true_or_false"] = "true_or_false"
    gives = "label"
    labels = ("truth",)
    pools = True

    dropout: float = Field(0.1, ge=0, lt=1, description="on the pooled state, while learning")

    def build(self, backbone, labels):
        from .true_or_false import TrueOrFalseObjective

        return TrueOrFalseObjective(self, backbone)


@mmgen.hookimpl
def register_objectives():
    return [TrueOrFalse]
