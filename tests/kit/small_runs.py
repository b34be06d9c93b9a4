"""Small runs, made once per process: a finished and a stopped one, whose files tests copy and damage; and two that
extract features of drawn pictures, one that writes and one that predicts, which tests load and export."""

import contextlib
import functools
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

RECIPE = """\
name = "toy"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 16
num_attention_heads = 2
vocab_size = 60
[inputs.image]
type = "regions"
features = "{folder}/features.h5"
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 6
[training]
batch_size = 4
epochs = 2
checkpoint_every = 1
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
[data]
type = "table"
folder = "{folder}"
[data.files]
train = "rows.jsonl"
val = "rows.jsonl"
test = "rows.jsonl"
[metrics.captioneval]
type = "captioneval"
meteor = false
"""
STEP = Path("toy/default/seed-0/steps/both")

DRAWN = {
    # a step that reads captions, and one that reads pictures too; texts are searched for with beams
    "writes": """\
name = "writes"
[backbone]
type = "bert"
num_hidden_layers = 1
hidden_size = 16
num_attention_heads = 2
vocab_size = 60
[inputs.image]
type = "regions"
max_regions = 4
normalize = "standard"
[inputs.image.extractor]
type = "roi"
model = "test_resnet"
image_size = 64
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 8
[training]
batch_size = 16
epochs = 2
learning_rate = 1e-3
[steps.words]
inputs = ["caption"]
train = ["backbone"]
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
start = "words"
[data]
type = "scenes"
train_size = 12
val_size = 2
test_size = 3
[decoding]
num_beams = 2
[metrics.meaning]
type = "discovery"
""",
    # steps that answer: labels, choices whose words mean regions, and regions
    "predicts": """\
name = "predicts"
[backbone]
type = "vlbert"
num_hidden_layers = 1
hidden_size = 16
num_attention_heads = 2
vocab_size = 90
[inputs.question]
type = "text"
append_mask = true
[inputs.choice]
type = "text"
token_type = 1
[inputs.expression]
type = "text"
[inputs.image]
type = "vlbert_regions"
max_regions = 4
mentions = ["question", "choice"]
[inputs.image.extractor]
type = "roi"
model = "test_resnet"
image_size = 64
[generator]
type = "masked"
max_tokens = 8
[objectives.answers]
type = "answer_classes"
[objectives.choices]
type = "multiple_choice"
loss = "bce"
[objectives.expressions]
type = "region_choice"
[data]
type = "scene_answers"
train_size = 12
val_size = 2
test_size = 3
[training]
batch_size = 16
epochs = 1
learning_rate = 1e-3
[steps.expressions]
inputs = ["expression", "image"]
train = ["image", "backbone"]
objectives = ["expressions"]
data = { type = "scene_expressions", train_size = 12, val_size = 2, test_size = 3 }
[steps.answers]
inputs = ["question", "image"]
train = ["image", "backbone"]
objectives = ["answers"]
start = "expressions"
[steps.choices]
inputs = ["question", "choice", "image"]
train = ["image", "backbone"]
objectives = ["choices"]
start = "expressions"
data = { type = "scene_choices", train_size = 12, val_size = 2, test_size = 3 }
[metrics.answers]
type = "vqa_accuracy"
[metrics.choices]
type = "choice_accuracy"
[metrics.boxes]
type = "box_accuracy"
""",
}


def runs() -> Path:
    """A folder with a finished run and a stopped one, beside the files that they read."""
    return Path(_make_run().name)


def drawn(name: str) -> Path:
    """The folder of the finished run "writes" or "predicts"; its recipe is `recipe_of(name)`."""
    return Path(_make_drawn(name).name) / "runs" / name / "default" / "seed-0"


def recipe_of(name: str) -> Path:
    return Path(_make_drawn(name).name) / f"{name}.toml"


@functools.cache
def _make_drawn(name: str) -> tempfile.TemporaryDirectory:
    from mmgen.recipe.load import load
    from mmgen.registry import installed
    from mmgen.runs.run import run

    holder = tempfile.TemporaryDirectory(prefix=f"mmgen-{name}-")
    path = Path(holder.name) / f"{name}.toml"
    path.write_text(DRAWN[name], encoding="utf-8")
    recipe = load(path, installed())[0]
    with quietly(), mock.patch("mmgen.report.try_page"):
        run(recipe.model_copy(update={"output": str(path.parent / "runs")}))
    return holder


@functools.cache
def _make_run() -> tempfile.TemporaryDirectory:
    """Create the runs once per process, and delete them at its exit (a child exits without this)."""
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record
    from mmgen.recipe.load import load
    from mmgen.registry import installed
    from mmgen.runs.run import run

    holder = tempfile.TemporaryDirectory(prefix="mmgen-run-")
    base = Path(holder.name)
    draw = np.random.default_rng(0)
    with StoreWriter(base / "features.h5", {"extractor": "toy"}) as writer:
        for key in ("a", "b", "c"):
            corners = draw.random((2, 2)) / 2
            writer.add(Record(key, draw.random((2, 5)), np.concatenate([corners, corners + 0.3], 1)))
    rows = [
        {"id": key, "image": key, "caption": "a red dog", "questions": ["what is it", "why the dog"]}
        for key in ("a", "b", "c")
    ]
    (base / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (base / "toy.toml").write_text(RECIPE.format(folder=base), encoding="utf-8")
    recipe = load(base / "toy.toml", installed())[0]
    with quietly():
        run(recipe.model_copy(update={"output": str(base / "runs")}))
        with contextlib.suppress(KeyboardInterrupt):
            run(recipe.model_copy(update={"output": str(base / "stopped")}), progress=_stopping())
    return holder


@contextlib.contextmanager
def quietly():
    """Hide progress bars, messages, and hints of libraries."""
    from transformers.utils import logging as hf

    hf.set_verbosity(logging.CRITICAL)
    hf.disable_progress_bar()
    log = logging.getLogger("mmgen")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):  # noqa: PTH123
            yield
    finally:
        log.setLevel(level)


def _stopping() -> Any:
    """A progress that stops a run after its third update."""
    from mmgen.progress import Progress

    class Stopping(Progress):
        @contextlib.contextmanager
        def task(self, label, total, unit="", done=0):
            calls = iter(range(3))

            def advance(steps=1, text=""):
                if "training" in label and next(calls, None) is None:
                    raise KeyboardInterrupt

            yield advance

    return Stopping()
