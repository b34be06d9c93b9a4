"""Callbacks watch a run and change nothing: weights to the bit, and no failure of one ends a run."""

import json
import re
from pathlib import Path
from typing import Literal

import pytest
from kit import toys
from kit.training import RecordedProgress

from mmgen.configs import CallbackConfig
from mmgen.parts import Callback
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run

DOCS = Path(__file__).parents[2] / "docs" / "plugins.md"


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


def train(folder, *configs, **changes):
    """A run of the toy recipe with these callbacks: its weights, its log and its output."""
    (folder / "toy.toml").write_text(toys.recipe(output=str(folder / "runs"), **changes))
    recipe = load(folder / "toy.toml", installed())[0]
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
def test_weights_and_log_are_equal_to_the_bit_with_callbacks_that_show_examples(tmp_path, plain):
    assert train(tmp_path, Watch(num_examples=2)) == plain
    methods = [method for _, method, *_ in EVENTS]
    assert methods[:3] == ["on_run_begin", "on_step_begin", "on_update"] and methods[-2:] == ["on_run_end", "close"]
    assert set(methods) == set(METHODS)
    shown = [examples for _, method, _, _, examples in (e for e in EVENTS if e[1] == "on_examples")]
    assert [len(examples) for examples in shown] == [2, 2]  # two steps of one epoch
    assert all(example.prediction.id == example.example.id and example.pictures for example in shown[0])
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


def documented():
    table = re.search(r"<!-- record: begin -->(.*?)<!-- record: end -->", DOCS.read_text(), re.DOTALL)
    return set(re.findall(r"^\| `(\w+)`", table[1], re.MULTILINE))


@pytest.mark.slow
def test_records_have_the_documented_keys(tmp_path):
    line = {"id": "1", "caption": "a red ball", "questions": ["why ?"]}
    (tmp_path / "train.jsonl").write_text(json.dumps(line) + "\n")
    stories = {"type": "table", "folder": str(tmp_path), "validation_split": "", "test_split": "train"}
    scenes = {"type": "scenes", "train_size": 24, "val_size": 4, "test_size": 6}
    both = {
        "inputs": ["caption"],
        "train": ["caption", "backbone"],
        "objectives": ["generator", "words"],
        "data": [scenes, stories],
        "training": {"input_learning_rate": 1e-2, "metric_for_best_model": "relevance", "keep": "best"},
    }
    rates = {"inputs": ["caption"], "train": ["backbone"], "training": {"learning_rates": {"*.bias": 1e-4}}}
    _, logs, _ = train(tmp_path, steps={"both": both, "rates": rates}, objectives={"words": {"type": "masked_words"}})
    seen = {key for log in logs for record in log for key in record}
    assert seen <= documented() and documented() - seen == {"micro_batch_size"}  # of small memory
