"""A finished run and a stopped one, made once, whose files tests copy and damage."""

import contextlib
import functools
import json
import logging
import os
import tempfile
from pathlib import Path
from typing import Any

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
type = "jsonl"
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


def runs() -> Path:
    """A folder with a finished run and a stopped one, beside the files that they read."""
    return Path(_make_run().name)


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
        writer.finish()
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
    """Hide progress bars and hints of libraries."""
    from transformers.utils import logging as hf

    hf.set_verbosity(logging.CRITICAL)
    hf.disable_progress_bar()
    logging.getLogger("mmgen").setLevel(logging.ERROR)
    with open(os.devnull, "w") as nothing, contextlib.redirect_stdout(nothing), contextlib.redirect_stderr(nothing):  # noqa: PTH123
        yield


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
