"""Image-text contrast: two inputs as vectors that fit each other, and recall of pictures and captions by vectors."""

from typing import Literal

import mmgen
from pydantic import Field

MMGEN_API = 4


class ContrastiveLoss(mmgen.ObjectiveConfig):
    """The loss of `contrastive` without predictions: for a step that also writes or predicts (Li et al., 2021,
    "ALBEF")."""

    type: Literal["contrastive_loss"] = "contrastive_loss"
    over_batch = True

    inputs: tuple[str, str] = Field(("image", "caption"), description="the two inputs that are compared")
    projection_dim: int = Field(256, ge=1, le=65536, description="width of the vectors that are compared")
    logit_scale_init_value: float = Field(
        2.6592, ge=0, le=4.6, description="logarithm of the initial inverse temperature, which is trained"
    )

    def build(self, backbone, vocabularies):
        from .objective import ContrastiveObjective

        return ContrastiveObjective(self, backbone.hidden_size)

    def errors(self, inputs):
        if self.inputs[0] == self.inputs[1]:
            return f"compares '{self.inputs[0]}' with itself; name two inputs"
        if absent := [name for name in self.inputs if name not in inputs]:
            return f"compares {' and '.join(map(repr, self.inputs))}, but the step does not read '{absent[0]}'"
        return ""


class Contrastive(ContrastiveLoss):
    """Image-text contrast: each picture must fit its own caption better than all other captions of the batch, and the
    other way round (Radford et al., 2021, "CLIP"). It predicts a vector of length 1 for each of the two inputs."""

    type: Literal["contrastive"] = "contrastive"
    gives = "vectors"

    def build(self, backbone, vocabularies):
        from .objective import PredictingObjective

        return PredictingObjective(self, backbone.hidden_size)


class Recall(mmgen.MetricConfig):
    """Recall at 1, 5 and 10 of pictures for captions and of captions for pictures, in percent, among those of the
    scored split (Karpathy and Fei-Fei, 2015). A caption that is also true of another picture is right there too."""

    type: Literal["recall"] = "recall"
    judges = frozenset({"vectors"})

    image: str = Field("image", description="the input with the picture, and the field of an example")
    caption: str = Field("caption", description="the input with the caption, and the field of an example")

    def build(self):
        from .metric import RecallMetric

        return RecallMetric(self.image, self.caption)


@mmgen.hookimpl
def register_objectives():
    return [Contrastive, ContrastiveLoss]


@mmgen.hookimpl
def register_metrics():
    return [Recall]
