"""The conformance suite of callbacks. The contract is in `mmgen.configs.CallbackConfig` and `mmgen.parts.Callback`."""

from __future__ import annotations

import copy
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from ..configs import CallbackConfig
from ..parts import Callback, RunInfo
from .suite import Suite

RECORD = {"update": 1, "epoch": 0.5, "loss": 2.5, "losses": {"a.loss": 2.0}, "lr": 1e-4, "grad_norm": 0.7}
EPOCH_END = {**RECORD, "validation_loss": 2.25}


class CallbackSuite(Suite[CallbackConfig]):
    """Plays the events of a small run, of a run that resumes, and of one that stops early. `config()` returns a
    `CallbackConfig` that needs no network."""

    def callback(self) -> Callback:
        built = self.config().build()
        assert isinstance(built, Callback), f"build() returned {built!r:.60}; expected a mmgen.parts.Callback"
        return built

    def run_info(self, folder: Path) -> RunInfo:
        """A run with one step. `folder` exists."""
        recipe = {"name": "suite", "seed": 0, "training": {"epochs": 2, "betas": [0.9, 0.999], "keep": None}}
        return RunInfo("suite", "default", 0, folder, recipe, ("first",))

    def play(self, callback: Callback, folder: Path, done: int = 0, ends: bool = True) -> None:
        """The events of a run with two updates, from update `done` on."""
        callback.on_run_begin(self.run_info(folder))
        callback.on_step_begin("first", done, 2)
        for number in range(done, 2):
            record = {**(EPOCH_END if number else RECORD), "update": number}
            callback.on_update("first", {**RECORD, "update": number})
            if number:
                callback.on_validation("first", {"update": number, "validation_loss": 2.25})
                callback.on_epoch_end("first", record)
        if ends:
            callback.on_step_end("first", {"cider": 0.5, "no_value": None})
            callback.on_run_end(["| | cider |\n|---|---|\n| first | 50.0 |"])
        callback.close()

    def test_it_watches_a_run(self) -> None:
        with TemporaryDirectory() as folder:
            self.play(self.callback(), Path(folder))

    def test_it_watches_a_run_that_resumes(self) -> None:
        with TemporaryDirectory() as folder:
            self.play(self.callback(), Path(folder), ends=False)
            self.play(self.callback(), Path(folder), done=1)

    def test_it_closes_without_any_event(self) -> None:
        self.callback().close()

    def test_the_random_numbers_of_training_stay(self) -> None:
        with TemporaryDirectory() as folder:
            before = torch.get_rng_state()
            self.play(self.callback(), Path(folder))
        assert torch.equal(before, torch.get_rng_state()), (
            "the callback draws from torch's global generator, from which training draws dropout at the same time; use "
            "a torch.Generator or random.Random"
        )

    def test_records_stay_as_they_are(self) -> None:
        with TemporaryDirectory() as folder:
            callback, record = self.callback(), copy.deepcopy(EPOCH_END)
            callback.on_run_begin(self.run_info(Path(folder)))
            callback.on_step_begin("first", 0, 2)
            callback.on_epoch_end("first", record)
            callback.close()
        assert record == EPOCH_END, f"on_epoch_end changed its record to {record}; copy a record before you change it"
