"""Refuse an update whose loss or gradient is not finite: the examples, and the part that is to blame."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from ..errors import RunError
from .accumulate import Means
from .distributed import gather_texts
from .precision import precision

if TYPE_CHECKING:
    from .train import Trainer


def refuse_losses(trainer: Trainer, number: int, means: Means) -> None:
    """Raises RunError with the examples whose loss is not finite, or else with all examples of the update."""
    processes = trainer.processes
    suspects = [batch for batch, loss in means.batches if not loss.isfinite()]
    ids = gather_texts(processes, [id_ for batch in suspects for id_ in batch.ids])
    ids = ids or gather_texts(processes, [id_ for batch, _ in means.batches for id_ in batch.ids])
    suspects = suspects or [batch for batch, _ in means.batches]
    with torch.no_grad(), precision(trainer.training.precision, processes.device):
        causes = [cause for batch in suspects if (cause := trainer.model.not_finite(batch))]
    cause = next(iter(gather_texts(processes, causes)), "")
    ids = list(dict.fromkeys(ids))
    shown = ", ".join(ids[:8]) + (f" and {len(ids) - 8} more" if len(ids) > 8 else "")
    advice = f"check {'that part and ' if cause else ''}the data of these examples with `mmgen data check`"
    if number:  # before any update, no learning rate is too high, and there is no checkpoint
        advice = f"lower learning_rate or {advice}; the last checkpoint is kept"
    what = "gradient" if math.isfinite(means.loss) else "loss"
    raise RunError(
        f"step '{trainer.context.name}', update {number}: the {what} is not finite (examples {shown})"
        f"{f': {cause}' if cause else ''}; {advice}"
    )
