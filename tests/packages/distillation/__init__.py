"""Distillation: a head over the encoder keeps to what the model said when its step began."""

from typing import Literal

import mmgen


class Distillation(mmgen.ObjectiveConfig):
    """Predicts the state of [CLS] that the model had when the step began."""

    type: Literal["distillation"] = "distillation"

    def build(self, backbone, vocabularies):
        from .objective import DistillationObjective

        return DistillationObjective(backbone)


@mmgen.hookimpl
def register_objectives():
    return [Distillation]
