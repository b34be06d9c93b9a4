"""The conformance suite of callbacks. The contract is in `mmgen.configs.CallbackConfig` and `mmgen.parts.Callback`."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..configs import CallbackConfig
from ..parts import Callback, RunInfo
from .suite import Suite

RECORD = {"update": 1, "epoch": 0.5, "loss": 2.5, "losses": {"a.loss": 2.0}, "lr": 1e-4, "grad_norm": 0.7}
RECIPE = {"name": "suite", "seed": 0, "training": {"epochs": 2, "betas": [0.9, 0.999], "keep": None}}


class CallbackSuite(Suite[CallbackConfig]):
    """Plays the events of a small run, and of a run that resumes. `config()` returns a `CallbackConfig` that needs no
    network."""

    def play(self, callback: Callback, folder: Path, done: int = 0) -> None:
        """The events of a run with one step of two updates, from update `done` on. `folder` exists."""
        record = {**RECORD, "validation_loss": 2.25}
        callback.on_run_begin(RunInfo("suite", "default", 0, folder, RECIPE, ("first",)))
        callback.on_step_begin("first", done, 2)
        for number in range(done, 2):
            callback.on_update("first", {**RECORD, "update": number})
        callback.on_validation("first", {"update": 1, "validation_loss": 2.25})
        callback.on_epoch_end("first", record)
        callback.on_step_end("first", {"cider": 0.5, "no_value": None})
        callback.on_run_end(["| | cider |\n|---|---|\n| first | 50.0 |"])
        callback.close()
        same = record == {**RECORD, "validation_loss": 2.25}
        assert same, f"on_epoch_end changed its record to {record}; copy a record before you change it"

    def test_it_watches_a_run(self) -> None:
        """None, a whole one, and one that resumes."""
        before, build = torch.get_rng_state(), self.buildable().build
        build().close()
        with TemporaryDirectory() as folder:
            for done in (0, 1):
                self.play(build(), Path(folder), done)
        assert torch.equal(before, torch.get_rng_state()), (
            "the callback draws from torch's global generator, from which training draws dropout at the same time; use "
            "a torch.Generator or random.Random"
        )
