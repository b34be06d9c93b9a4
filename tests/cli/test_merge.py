"""Shards on the command line: features and answers, and `mmgen merge`."""

import json

import numpy as np
import pytest
from kit import served
from kit.toys import mmgen_here as mmgen

from mmgen.features.extract import Shard
from mmgen.features.store import FeatureStore

EXTRACT = ("--type", "roi", "--set", "model=test_resnet", "--set", "image_size=32", "--set", "weights=random")
COLORS = ("red", "green", "blue", "white", "yellow", "black", "gray")


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "pictures").mkdir()
    for color in COLORS:
        (tmp_path / "pictures" / f"{color}.png").write_bytes(served.picture(color))
    return tmp_path


def run(folder, *arguments) -> str:
    done = mmgen(folder, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_shards_of_features_fill_one_folder_and_may_have_no_picture(folder):
    extract = ("features", "extract", "pictures")
    run(folder, *extract, "whole", *EXTRACT)
    for number in (1, 2, 3):
        run(folder, *extract, "r", *EXTRACT, "--shard", f"{number}/3")
    run(folder, *extract, "none", *EXTRACT, "--shard", f"{unused(40)}/40")
    single, parts = FeatureStore(folder / "whole"), FeatureStore(folder / "r")
    assert sorted(parts) == sorted(single) == sorted(COLORS)
    assert all(np.allclose(parts.read(key).features, single.read(key).features, atol=2e-3) for key in single)


def unused(count: int) -> int:
    """The number of a shard without pictures."""
    return next(n for n in range(1, count) if not any(Shard(n, count).owns(color) for color in COLORS))


@pytest.mark.slow
def test_answers_of_all_shards_are_those_of_one_process(folder, monkeypatch):
    predictor = served.predictor(folder)
    monkeypatch.setattr("mmgen.inference.load.load_for", lambda *_, **__: predictor)
    ask = ("generate", "run", "pictures", "--caption", "a dog")
    run(folder, *ask, "--out", "whole.jsonl")
    for number in (2, 1):
        run(folder, *ask, "--out", "a.jsonl", "--shard", f"{number}/2")
    assert run(folder, "merge", "a.jsonl", "--check") == "a.jsonl: all shards are complete, 7 answers\n"
    assert run(folder, "merge", "a.jsonl") == "a.jsonl: 7 lines\n"
    lines, single = ((folder / name).read_text().splitlines() for name in ("a.jsonl", "whole.jsonl"))
    for line, expected in zip(map(json.loads, lines), map(json.loads, single), strict=True):
        assert line["id"] == expected["id"] and line["texts"][0]["text"] == expected["texts"][0]["text"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "run", "x.png", "--shard", "1/2"), "--shard 1/2: requires --out FILE"),
        (
            ("generate", "run", "x.png", "--shard", "3/2", "--out", "a.jsonl"),
            "--shard 3/2: write NUMBER/COUNT, such as 3/8 for the third of eight shards",
        ),
        (("merge", "a.jsonl"), "a.jsonl: has shards of no number; one number is needed, as in a-1-of-8.jsonl"),
        (
            ("predict", "run", "--as", "vqa", "--out", "a", "--shard", "1/2"),
            "--as vqa: writes one file for a full split; leave out --shard",
        ),
    ],
)
def test_mistakes(tmp_path, arguments, message):
    assert mmgen(tmp_path, *arguments).stderr == f"error: {message}\n"
