"""`mmgen data check`: counts as a table, missing items by name, and an exit code."""

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kit import published, toys

from mmgen.cli import main
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record
from mmgen.runs import data_summary

LINES = [
    {"id": "1", "image": "1.jpg", "caption": "a dog on a beach", "questions": ["whose dog is it ?", "where is it ?"]},
    {"id": "2", "image": "2.jpg", "caption": "a cat", "questions": ["why is it here ?"]},
    {"id": "3", "image": "3.jpg", "questions": ["what is it ?"]},
    {"id": "4", "image": "4.jpg", "questions": ["what is it ?"]},
]


@pytest.fixture
def recipe(tmp_path, monkeypatch) -> Path:
    """Pictures 1 and 2 have features; 3 and 4 have no caption."""
    monkeypatch.chdir(tmp_path)
    for split in ("train", "test"):
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES))
    with StoreWriter(tmp_path / "regions.h5", {"extractor": "made up"}) as writer:
        for key in ("1", "2"):
            writer.add(Record(key, np.ones((3, 4), np.float32), np.tile(np.float32([0, 0, 1, 1]), (3, 1))))
        writer.finish()
    text = toys.recipe(
        inputs={"image": {"type": "regions", "features": "regions.h5"}, "caption": {"type": "text"}},
        steps={
            "words": {"inputs": ["caption"], "train": ["backbone"]},
            "both": {"inputs": ["image", "caption"], "train": ["backbone"]},
        },
        data={"type": "jsonl", "folder": ".", "validation_split": ""},
        metrics=None,
    )
    (tmp_path / "toy.toml").write_text(text.replace("train_size = 24\nval_size = 4\ntest_size = 6\n", ""))
    return tmp_path / "toy.toml"


def check(recipe: Path, *more: str):
    return CliRunner().invoke(main, ["data", "check", str(recipe), *more], catch_exceptions=False)


def test_counts_are_a_table_and_what_is_missing_is_named(recipe):
    done = check(recipe)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    assert [line for line in lines if line.startswith("|")][:6] == [
        "|                 | train | test |",
        "|-----------------|------:|-----:|",
        "| examples        |     2 |    2 |",
        "| images          |     4 |    4 |",
        "| questions       |     3 |    3 |",
        "| captions        |     2 |    2 |",
    ]
    assert "| without caption |     2 |    2 |" in lines and "  without caption     2 (3, 4)" in lines
    assert "train: 2 examples, 3 targets" in lines and "train and test share 2 images" in lines
    (image_line,) = [
        line for line in lines if line.startswith("  image               2 of 2 images have features in ")
    ][:1]
    assert image_line.endswith("regions.h5")
    assert (
        "| train: caption   |     2 |      3 |    5 |   0 |       0 |" not in lines
    )  # columns are as wide as they must
    (row,) = [line.split("|")[2:] for line in lines if line.startswith("| train: targets")]
    assert [cell.strip() for cell in row][3:] == ["0", "0", ""]


def test_the_recipe_is_not_overwritten(recipe):
    done = check(recipe, "--list-missing", str(recipe))
    message = f"error: --list-missing {recipe}: is also an input file and would be overwritten; choose another name\n"
    assert (done.output, done.exit_code) == (message, 1)


def test_what_stops_a_run_is_an_exit_code(recipe):
    done = check(recipe, "--set", "data.missing=keep", "--list-missing", "missing.tsv")
    assert done.exit_code == 1
    assert (
        "  caption missing     2 (train-3, train-4)" in done.output
        and "  image without features 2 (3, 4)" in done.output
    )
    assert done.output.endswith(
        "missing.tsv: 12 missing\n"
        "error: missing data would stop a run:\n"
        "  train: 2 images without features of image; step 'both' reads it\n"
        "  train: 2 examples without caption; step 'words' reads it\n"
        "  test: 2 images without features of image; step 'both' reads it\n"
        "  test: 2 examples without caption; step 'words' reads it\n"
    )
    rows = [line.split("\t") for line in Path("missing.tsv").read_text().splitlines()]
    assert rows[:2] == [["split", "what", "image or example"], ["train", "image without features", "3"]]
    assert ["train", "caption missing", "train-3"] in rows and ["test", "without caption", "4"] in rows


def test_an_input_that_no_step_reads_stops_no_run(recipe):
    recipe.write_text(recipe.read_text().replace('inputs = ["image", "caption"]', 'inputs = ["caption"]'))
    done = check(recipe, "--set", "inputs.image.features=nowhere.h5")
    assert done.exit_code == 0 and "nowhere.h5: no such file" in done.output
    done = check(recipe, "--set", "inputs.image.features=nowhere.h5", "--set", 'steps.words.inputs=["image"]')
    assert done.exit_code == 1
    assert "error: missing data would stop a run:\n  image: nowhere.h5: no such file" in done.output


def test_without_the_encoder_all_but_the_lengths_is_reported(recipe):
    done = check(recipe, "--set", "backbone.weights=nobody/nothing")
    assert done.exit_code == 1  # it would stop a run
    assert "\nerror: missing data would stop a run:\n  --set backbone.weights=nobody/nothing: backbone.weights: " in (
        done.output
    )
    assert "train and test share 2 images" in done.output and "train-1\n  image: 1\n" in done.output
    assert "lengths in tokens need the encoder: backbone.weights: 'nobody/nothing'" in done.output


def test_texts_that_are_cut_or_unknown_are_counted(recipe):
    lines = [*LINES, {"id": "5", "image": "1.jpg", "caption": "💥", "questions": ["what " * 30]}]
    Path("test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    rows = {
        line.split("|")[1].strip(): line.split("|")[2:-1] for line in check(recipe).output.splitlines() if "|" in line
    }
    assert [cell.strip() for cell in rows["test: targets"]][2:] == ["120", "1", "0"]
    assert [cell.strip() for cell in rows["test: caption"]][3:] == ["0", "1"]


def test_pairs_of_pictures_are_counted_one_by_one_and_shown_with_their_label(tmp_path):
    published.nlvr2(tmp_path)
    more_rows = [{"identifier": f"train-850-{pair}-1", "sentence": "A cat."} for pair in (0, 1)]
    (tmp_path / "dev.json").write_text("".join(json.dumps(row) + "\n" for row in more_rows))
    text = toys.recipe(
        inputs={"image": {"type": "regions", "extractor": {"type": "roi"}}, "statement": {"type": "text"}},
        steps={"s": {"inputs": ["image", "statement"], "train": ["image"], "evaluate": False}},
        data={"type": "nlvr2", "folder": ".", "images": "images"},
        metrics=None,
    )
    (tmp_path / "r.toml").write_text(text.replace("train_size = 24\nval_size = 4\ntest_size = 6\n", ""))
    done = check(tmp_path / "r.toml")
    assert "train and dev share 4 images" in done.output
    shown = "train-850-0-0\n  image: train-850-0-img0, train-850-0-img1\n  statement: There is a dog.\n  truth = True\n"
    assert shown in done.output


def test_a_step_scored_on_its_own_data_reads_no_other_data(tmp_path):
    step_data = {"type": "scene_expressions", "train_size": 3, "val_size": 1, "test_size": 1}
    text = toys.recipe(
        inputs={"image": {"type": "regions", "extractor": {"type": "roi"}}, "expression": {"type": "text"}},
        objectives={"region": {"type": "region_choice"}},
        steps={
            "s": {"inputs": ["image", "expression"], "train": ["image"], "objectives": ["region"], "data": step_data}
        },
        metrics=None,
    )
    (tmp_path / "r.toml").write_text(text)
    done = check(tmp_path / "r.toml")
    assert done.exit_code == 0 and "6 examples" in done.output and "error" not in done.output


def test_inputs_that_only_steps_with_separate_data_read_are_not_missing(tmp_path):
    step_data = {"type": "scene_expressions", "train_size": 3, "val_size": 1, "test_size": 1}
    text = toys.recipe(
        inputs={"caption": {"type": "text"}, "expression": {"type": "text"}},
        steps={
            "words": {"inputs": ["caption"], "train": ["backbone"]},
            "more": {"inputs": ["expression"], "train": ["backbone"], "data": step_data, "evaluate": False},
        },
        metrics=None,
    )
    (tmp_path / "r.toml").write_text(text)
    done = check(tmp_path / "r.toml", "--list-missing", str(tmp_path / "missing.tsv"))
    assert done.exit_code == 0
    assert (tmp_path / "missing.tsv").read_text() == "split\twhat\timage or example\n"


def test_the_list_is_also_written_where_a_split_is_empty(recipe):
    Path("test.jsonl").write_text("".join(json.dumps(line) + "\n" for line in LINES[2:]))
    (recipe.parent / "images").mkdir()
    done = check(recipe, "--set", 'data.images="images"', "--list-missing", "missing.tsv")
    assert done.exit_code == 1
    empty = f"{Path('train.jsonl').resolve()}: no examples remain for the split 'train'"
    assert f"missing.tsv: 8 missing\nerror: {empty}" in done.output
    rows = [line.split("\t") for line in Path("missing.tsv").read_text().splitlines()[1:]]
    assert rows == [
        *(["train", "without picture", key] for key in "1234"),
        *(["train", "without caption", key] for key in "34"),
        *(["test", "without picture", key] for key in "34"),
    ]


def test_lengths_are_counted_in_parts(recipe, monkeypatch):
    in_one_part = check(recipe).output
    monkeypatch.setattr(data_summary, "TEXTS", 2)
    assert check(recipe).output == in_one_part
