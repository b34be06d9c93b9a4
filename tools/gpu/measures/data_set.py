"""Creates a synthetic data set of a given size: a feature store, questions as JSONL, and a recipe that trains on them.

Features are random numbers, as many per image as in a real store. If there are more images than the store has,
images repeat; then the file is in the page cache from the first epoch on, like a file that was read before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np

from mmgen.features.writer import StoreWriter

from .synthetic import CAPTION, REGIONS, Arguments, arguments, heads, record, tell, texts

RECIPE = """\
name = "epochs"
[backbone]
type = "bert"
num_hidden_layers = {layers}
hidden_size = {width}
num_attention_heads = {heads}
vocab_size = {words}
[inputs.image]
type = "regions"
features = "{folder}/regions.h5"
max_regions = {regions}
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
batch_size = 128
learning_rate = 2e-5
[steps.both]
inputs = ["image", "caption"]
train = ["image", "backbone"]
evaluate = false
[data]
type = "jsonl"
folder = "{folder}"
validation_split = "train"  # which is to say: nothing is watched
files = {{ train = "train.jsonl", test = "test.jsonl" }}
"""
WORDS = 8  # of a question; nine tokens with its end


def make(chosen: Arguments, folder: Path) -> dict:
    """Create the folder, completely or not at all."""
    partial = folder.with_suffix(".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    draw = np.random.default_rng(0)
    with StoreWriter(partial / "regions.h5", {"made": "random numbers"}) as writer:
        for image in range(chosen.stored):
            writer.add(record(str(image), chosen.features, draw))
        writer.finish()
    makers = texts(chosen.words - 100, 0)
    for name, count in (("train", chosen.count), ("test", 2)):
        lines = []
        for number, write in zip(range(count), makers, strict=False):
            questions = [write(WORDS) for _ in range(chosen.questions)]
            image = str(number % chosen.stored)
            lines.append({"id": str(number), "image": image, "caption": write(CAPTION), "questions": questions})
        (partial / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    sizes = {"layers": chosen.layers, "width": chosen.width, "words": chosen.words, "heads": heads(chosen.width)}
    (partial / "recipe.toml").write_text(
        RECIPE.format(**sizes, regions=REGIONS, folder=folder.resolve()), encoding="utf-8"
    )
    size = sum(path.stat().st_size for path in partial.iterdir())
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)
    return {"bytes": size, "images": chosen.count, "stored": chosen.stored, "questions": chosen.questions}


def _more(parser) -> None:
    parser.add_argument("folder", type=Path)
    for name in ("count", "stored", "questions"):
        parser.add_argument(f"--{name}", type=int, required=True)


if __name__ == "__main__":
    options = arguments(__doc__, _more)
    tell(make(options, options.folder))
