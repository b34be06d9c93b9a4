"""Callbacks watch a run and change nothing: weights to the bit, and no failure of one ends a run."""

import json
from typing import Literal

import pytest
from kit import toys
from kit.training import RecordedProgress

from mmgen.configs import CallbackConfig
from mmgen.parts import Callback
from mmgen.runs.run import run


class Watch(CallbackConfig):
    """Notes every event."""

    type: Literal["watch"] = "watch"
    fails: str = ""

    def build(self):
        if self.fails == "build":
            raise ImportError("no module named 'tracker'")
        return Watching(self)


EVENTS: list = []


class Watching(Callback):
    def __init__(self, config):
        self.config = config


def noted(method):
    def call(self, *arguments):
        EVENTS.append((self, method, *arguments))
        if self.config.fails == method:
            raise ValueError("broken")
        if method == "on_update":
            arguments[1]["loss"] = arguments[1]["update"] = -1  # of a copy

    return call


METHODS = [name for name in vars(Callback) if name.startswith("on_")] + ["close"]
for name in METHODS:
    setattr(Watching, name, noted(name))


def train(folder, *configs):
    """A run of the toy recipe with these callbacks: its weights, its log and its output."""
    recipe = toys.loaded(folder, toys.recipe(output=str(folder / "runs")))
    recipe = recipe.model_copy(update={"callbacks": {f"watch{n}": config for n, config in enumerate(configs)}})
    said = RecordedProgress()
    place = run(recipe, progress=said, fresh=True)
    steps = [place.step(step) for step in recipe.steps]
    lines = [line for line in said.lines if "callbacks." in line]
    return [(step / "weights.safetensors").read_bytes() for step in steps], [records(step) for step in steps], lines


def records(folder):
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def plain(no_page, tmp_path_factory):
    """A run without callbacks."""
    return train(tmp_path_factory.mktemp("plain"))


@pytest.fixture(autouse=True)
def fresh(no_page):
    EVENTS.clear()


@pytest.mark.slow
def test_weights_and_log_are_equal_to_the_bit_with_callbacks(tmp_path, plain):
    assert train(tmp_path, Watch()) == plain
    methods = [method for _, method, *_ in EVENTS]
    assert methods[:3] == ["on_run_begin", "on_step_begin", "on_update"] and methods[-2:] == ["on_run_end", "close"]
    assert set(methods) == set(METHODS)
    ends = [record for _, method, step, record in (e for e in EVENTS if e[1] == "on_epoch_end") if step == "second"]
    assert ends == plain[1][1][-1:] and "validation_loss" in ends[0]
    (scores,) = [scores for _, method, step, scores in (e for e in EVENTS if e[1] == "on_step_end") if step == "first"]
    assert scores and all(isinstance(column, str) for column in scores)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("fails", "problem"),
    [
        ("build", "ImportError: no module named 'tracker'; the run continues without this callback"),
        ("on_update", "ValueError: broken; the run continues without this callback"),
        ("close", "ValueError: broken; the run continues without this callback"),
    ],
)
def test_a_callback_that_fails_is_reported_once_and_the_others_go_on(tmp_path, plain, fails, problem):
    weights, _, lines = train(tmp_path, Watch(fails=fails), Watch())
    assert len(lines) == 1 and lines[0].startswith("callbacks.watch0: ") and lines[0].endswith(problem)
    assert [method for watching, method, *_ in EVENTS if watching.config.fails == ""][-2:] == ["on_run_end", "close"]
    assert weights == plain[0]
