"""Train a model in Python, as a recipe's step does, without a recipe and without a folder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ..data.collate import Source
from ..examples import Example
from ..model import Model
from ..progress import Progress
from ..recipe.tables import GENERATOR, Step
from ..recipe.training import Training
from .context import StepContext
from .distributed import start
from .train import init_objective, train


def fit(
    model: Model,
    examples: Sequence[Example],
    *,
    epochs: int | None = 3,
    batch_size: int = 32,
    learning_rate: float = 2e-5,
    seed: int = 0,
    validation: Sequence[Example] | None = None,
    **training: Any,
) -> list[dict[str, Any]]:
    """Train all parts of a model with all its objectives. Returns the lines of the log, one for each update.

    validation  examples whose loss is measured after every epoch
    training    further keys of a recipe's table [training] (`mmgen.recipe.training.Training`)

    The model has the weights of the last epoch afterwards, or of the best (`keep = "best"`). Equal to a recipe's step
    of the name "fit" with these settings. Raises pydantic's ValidationError for unknown keys, and the errors of a
    step."""
    objectives = (*[GENERATOR] * model.has_generator, *model.objectives)
    settings = Training(epochs=epochs, batch_size=batch_size, learning_rate=learning_rate, **training)
    step = Step(inputs=model.inputs, train=(*model.inputs, "backbone"), objectives=objectives, training=settings)
    for name in objectives:
        if name not in model.initialised:
            init_objective(model, name, seed)
            model.initialised.add(name)
    with TemporaryDirectory(prefix="mmgen-") as folder:
        context = StepContext("fit", step, seed, Path(folder), start(), Progress())
        train(model, context, [Source(examples, validation or ())])
        return [json.loads(line) for line in (Path(folder) / "log.jsonl").read_text(encoding="utf-8").splitlines()]
