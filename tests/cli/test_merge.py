"""Shards on the command line: features and answers, and `mmgen merge`."""

import json

import pytest
from kit import served
from kit.toys import mmgen_here as mmgen

from mmgen.features.store import FeatureStore
from mmgen.features.stores import open_store

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


def test_features_of_all_shards_are_those_of_one_process(folder):
    extract = ("features", "extract", "pictures")
    run(folder, *extract, "whole.h5", *EXTRACT)
    run(folder, *extract, "r.h5", *EXTRACT, "--shard", "2/2")
    done = mmgen(folder, "merge", "r.h5", "--check")
    assert done.stderr == "error: r.h5: 1 of 2 shards are missing; run again with --shard 1/2\n"
    run(folder, *extract, "r.h5", *EXTRACT, "--shard", "1/2")
    assert run(folder, "merge", "r.h5", "--check", "--source", "pictures") == (
        "r.h5: all shards are complete, 7 images\n"
    )
    single, parts = FeatureStore(folder / "whole.h5"), open_store(folder / "r-*-of-2.h5")
    assert sorted(parts) == sorted(single) == sorted(COLORS)
    assert all((parts.read(key).features == single.read(key).features).all() for key in single)
    run(folder, "merge", "r.h5")
    assert sorted(FeatureStore(folder / "r.h5")) == sorted(COLORS)
    (folder / "pictures" / "new.png").write_bytes(served.picture("pink"))
    done = mmgen(folder, "merge", "r.h5", "--check", "--source", "pictures")
    assert done.stderr == "error: r.h5: 1 images of pictures have no features: new; run their shards again\n"


@pytest.mark.slow
def test_a_shard_of_no_picture_is_not_needed(folder):
    extract = ("features", "extract", "pictures", "r.h5", *EXTRACT, "--shard")
    outputs = [mmgen(folder, *extract, f"{number}/40").stderr for number in range(1, 41)]
    written = [text for text in outputs if "none of the images of pictures is in shard" not in text]
    assert 0 < len(written) <= len(COLORS)
    assert "7 images" in run(folder, "merge", "r.h5", "--check", "--source", "pictures")


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
        (("merge", "a.jsonl", "--source", "x"), "--source x: is only for features, files of .h5 or .hdf5"),
        (("merge", "a.jsonl"), "a.jsonl: has shards of no number; one number is needed, as in a-1-of-8.jsonl"),
        (
            ("predict", "run", "--as", "vqa", "--out", "a", "--shard", "1/2"),
            "--as vqa: writes one file for a full split; leave out --shard",
        ),
    ],
)
def test_mistakes(tmp_path, arguments, message):
    assert mmgen(tmp_path, *arguments).stderr == f"error: {message}\n"
