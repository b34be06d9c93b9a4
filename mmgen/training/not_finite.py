"""Refuse an update whose loss or gradient is not finite: the examples, and the part that is to blame."""

from __future__ import annotations

import math
from textwrap import shorten
from typing import TYPE_CHECKING

import torch

from ..errors import RunError
from .accumulate import Means
from .distributed import gather
from .precision import precision

if TYPE_CHECKING:
    from .train import Trainer


def refuse_losses(trainer: Trainer, number: int, means: Means) -> None:
    """Raises RunError with the examples whose loss is not finite, or else with all examples of the update."""
    with torch.no_grad(), precision(trainer.training.precision, trainer.processes.device):
        checked = [(bool(loss.isfinite()), batch.ids, trainer.model.not_finite(batch)) for batch, loss in means.batches]
    everywhere = gather(trainer.processes, checked)
    suspects = [row for row in everywhere if not row[0]] or everywhere
    ids = dict.fromkeys(id_ for _, batch_ids, _ in suspects for id_ in batch_ids)
    cause = next((cause for _, _, cause in suspects if cause), "")
    advice = f"check {'that part and ' if cause else ''}the data of these examples with `mmgen data check`"
    if number:  # before any update, no learning rate is too high, and there is no checkpoint
        advice = f"lower learning_rate or {advice}; the last checkpoint is kept"
    what = "gradient" if math.isfinite(means.loss) else "loss"
    raise RunError(
        f"step '{trainer.context.name}', update {number}: the {what} is not finite (examples "
        f"{shorten(', '.join(ids), 120, placeholder=' ...')}){f': {cause}' if cause else ''}; {advice}"
    )
