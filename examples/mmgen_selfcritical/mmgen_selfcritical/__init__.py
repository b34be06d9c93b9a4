"""Self-critical training for mmgen (Rennie et al., 2017): texts that the model draws are rewarded by a metric."""

from typing import Literal

import mmgen
from pydantic import Field, SerializeAsAny

MMGEN_API = 4


class SelfCritical(mmgen.ObjectiveConfig):
    """Raises the probability of drawn texts that a metric scores above the greedy text, and lowers that of the others.

    The loss is minus the mean reward of the drawn texts; its gradient is REINFORCE's with the reward of the greedy text
    as the baseline. Train it beside the generator, whose loss keeps the texts fluent:
    `objectives = ["generator", "reward"]`.
    """

    type: Literal["self_critical"] = "self_critical"

    metric: SerializeAsAny[mmgen.MetricConfig] = Field(description="the metric that rewards texts")
    column: str = Field(description="its column with a score in percent for each text; the reward is the score / 100")
    samples: int = Field(5, ge=1, le=1000, description="texts that are drawn for each example of an update")

    def model_post_init(self, context):
        if "text" not in self.metric.judges or self.metric.needs_pictures or self.metric.needs_device:
            raise ValueError(
                f"metric: '{self.metric.type}' needs more than texts and references; choose another metric"
            )

    def build(self, backbone, vocabularies):
        from .objective import SelfCriticalObjective

        return SelfCriticalObjective(self)


@mmgen.hookimpl
def register_objectives():
    return [SelfCritical]
