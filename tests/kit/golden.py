"""Golden files: all that a data set gives, line by line, beside the test that reads it."""

import json
from pathlib import Path

import pytest

from mmgen.examples import All


def given(dataset) -> str:
    """The examples of every split, the pictures, and what the data set says of itself, as JSON lines."""
    rows = [
        [split, example.id, example.inputs, example.targets, example.labels, example.facts]
        for split in dataset.splits()
        for example in dataset.split(split)
    ]
    if getattr(dataset.config, "images", None):
        rows += [["picture", at.key, at.boxes, at.region_names] for at in dataset.pictures()]
    rows.append([dataset.describe()["counts"], dataset.vocabularies()])
    return "".join(json.dumps(row, default=_as_json, ensure_ascii=False) + "\n" for row in rows)


def _as_json(value) -> dict:
    assert isinstance(value, All), value
    return {"all": value.values}


def check(path: Path, text: str) -> None:
    """The text is that of the golden file. A file that does not exist is written, to be looked at and committed."""
    if not path.exists():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        pytest.fail(f"{path} is new: look at it, and commit it")
    assert text.splitlines() == path.read_text(encoding="utf-8").splitlines()
