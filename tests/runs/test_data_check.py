"""What data lack: `mmgen data check` prints it with a summary, and a run stops at the first thing that stops it."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from kit import published, toys

from mmgen.cli import main
from mmgen.data.datasets import Datasets
from mmgen.features.writer import StoreWriter
from mmgen.model import compose
from mmgen.parts import Record
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs import data_check
from mmgen.runs.data_check import findings

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


def test_counts_are_shown_and_what_is_missing_is_named(recipe):
    done = check(recipe)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    counts = "images 4, questions 3, captions 2, without caption 2"
    assert lines[:2] == ["name: JSONL", f"counts: train {counts}; test {counts}"]
    assert "split 'train': 2 images without caption (3, 4)" in lines
    assert "train: 2 examples, 3 targets" in lines and "train and test share 2 images" in lines
    assert "targets: 3 texts have 4 to 5 tokens, the median is 5" in lines, lines


def test_what_stops_a_run_is_an_exit_code(recipe):
    done = check(recipe, "--set", "data.missing=keep")
    assert done.exit_code == 1
    advice = "remove these examples, or remove 'caption' from its inputs"
    images = f"{Path.cwd()}/regions.h5: no features for 2 of 4 images (3, 4); extract or import them, or leave the "
    images += "images out"
    assert done.output.endswith(
        "error: this would stop a run:\n"
        f"  step 'words', split 'train': 2 of 4 examples have no 'caption' (train-3, train-4); {advice}\n"
        f"  step 'words', split 'test': 2 of 4 examples have no 'caption' (test-3, test-4); {advice}\n"
        f"  step 'both', split 'train': {images}\n"
        f"  step 'both', split 'test': {images}\n"
    )
    rows = [line.split("\t") for line in Path("missing.tsv").read_text().splitlines()]
    assert rows[0] == ["where", "what", "image or example"]
    assert ["step 'words', split 'train'", "2 of 4 examples have no 'caption'", "train-3"] in rows
    assert ["split 'test'", "2 images without caption", "4"] in rows


def test_a_run_stops_at_the_first_of_them(recipe):
    done = CliRunner().invoke(main, ["run", str(recipe), "--set", "data.missing=keep"], catch_exceptions=False)
    assert done.exit_code == 1 and "training" not in done.output
    assert done.output.partition("error: ")[2] == (
        "step 'words', split 'train': 2 of 4 examples have no 'caption' (train-3, train-4); remove these examples, or "
        "remove 'caption' from its inputs\n"
    )
    recipe.write_text(recipe.read_text().replace('inputs = ["caption"]', 'inputs = ["image"]'))
    arguments = ["run", str(recipe), "--set", "data.missing=keep", "--step", "words"]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.output.partition("error: ")[2] == (
        f"step 'words', split 'train': {Path.cwd()}/regions.h5: no features for 2 of 4 images (3, 4); extract or "
        "import them, or leave the images out\n"
    )


def test_an_input_that_no_step_reads_stops_no_run(recipe):
    recipe.write_text(recipe.read_text().replace('inputs = ["image", "caption"]', 'inputs = ["caption"]'))
    done = check(recipe, "--set", "inputs.image.features=nowhere.h5")
    assert done.exit_code == 0
    done = check(recipe, "--set", "inputs.image.features=nowhere.h5", "--set", 'steps.words.inputs=["image"]')
    assert done.exit_code == 1
    (line,) = [line for line in done.output.splitlines() if "nowhere.h5" in line]
    assert line.startswith("  --set inputs.image.features=nowhere.h5: inputs.image.features: nowhere.h5: no features")


def test_without_the_encoder_all_but_the_lengths_is_reported(recipe):
    done = check(recipe, "--set", "backbone.weights=nobody/nothing")
    assert done.exit_code == 1  # it would stop a run
    assert "\nerror: this would stop a run:\n  --set backbone.weights=nobody/nothing: backbone.weights: " in (
        done.output
    )
    assert "train and test share 2 images" in done.output and "train-1\n  image: 1\n" in done.output
    assert "tokens, the median" not in done.output


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
    done = check(tmp_path / "r.toml")
    assert done.exit_code == 1 and {*re.findall(r"\d of \d examples have no [\w']+", done.output)} == {
        "6 of 6 examples have no target",  # which expressions have not; and nothing else is missing
        "2 of 2 examples have no target",
    }


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """A recipe of a text input whose texts are cut, with its data sets and its model."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"caption": {"type": "text", "max_tokens": 6}}))
    recipe = load(tmp_path / "toy.toml", installed())[0]
    datasets = Datasets(recipe)
    return recipe, datasets, compose(recipe.backbone, recipe.inputs, recipe.generator, texts=list(datasets.texts()))


def remarks(recipe, datasets, model, all_lengths=False) -> list[str]:
    found = findings(recipe, datasets, model.backbone, recipe.ordered(), all_lengths)
    return [str(finding) for finding in found if not finding.stops]


def test_a_run_says_which_texts_are_cut_or_unknown(toy):
    recipe, datasets, model = toy
    (line, *_) = lines = remarks(*toy)
    assert len(lines) == len(set(lines))  # once, though two steps read it
    assert re.fullmatch(r"caption: \d+ of 24 texts are longer than 6 tokens \(max_tokens\) and are cut", line)
    unknowing = compose(recipe.backbone, recipe.inputs, recipe.generator, texts=["xyz"] * 3)
    words = "words or characters that are not in the tokenizer's vocabulary"
    assert f"caption: 24 of 24 texts contain {words}" in remarks(recipe, datasets, unknowing)


def test_of_many_texts_the_first_are_counted(toy, monkeypatch):
    recipe, datasets, model = toy
    monkeypatch.setattr(data_check, "COUNTED", 5)
    generator = recipe.generator.model_copy(update={"max_tokens": 3})
    lines = "\n".join(remarks(recipe.model_copy(update={"generator": generator}), datasets, model, True))
    assert re.search(r"^targets: \d+ of the first \d+ texts are longer than 2 tokens ", lines, re.MULTILINE)
    assert re.search(r"^caption: \d+ of the first 5 texts are longer than 6 tokens ", lines, re.MULTILINE)
    assert re.search(r"^caption: the first 5 texts have \d+ to \d+ tokens, the median is \d+$", lines, re.MULTILINE)


def test_examples_without_an_input_or_a_target_are_counted(toy, monkeypatch):
    recipe, datasets, model = toy
    split = datasets.main.split
    examples = list(split("train"))
    for number in (3, 8, 20):
        examples[number] = replace(examples[number], inputs={"caption": ()})
    examples[11] = replace(examples[11], targets=())
    monkeypatch.setattr(type(datasets.main), "split", lambda self, name: examples if name == "train" else split(name))
    datasets = Datasets(recipe)
    stops = [finding for finding in findings(recipe, datasets, model.backbone, recipe.ordered()) if finding.stops]
    assert [(finding.what, len(finding.ids)) for finding in stops[:2]] == [
        ("3 of 24 examples have no 'caption'", 3),
        ("1 of 24 examples have no target", 1),
    ]
    assert stops[1].ids == [examples[11].id]


def test_images_without_a_picture_are_found_before_a_run_extracts_features(tmp_path, monkeypatch):
    text = toys.recipe(
        inputs={"image": {"type": "regions", "extractor": toys.ROI}},
        steps={"one": {"inputs": ["image"], "train": ["image"]}},
        data={"train_size": 3, "val_size": 1, "test_size": 1},
    )
    (tmp_path / "toy.toml").write_text(text)
    recipe = load(tmp_path / "toy.toml", installed())[0]
    datasets = Datasets(recipe)
    assert not [finding for finding in findings(recipe, datasets, None, ["one"]) if finding.stops]
    pictures = [picture for picture in datasets.pictures() if picture.key != "train-00001"]
    monkeypatch.setattr(datasets, "pictures", lambda: iter(pictures))
    (finding,) = [finding for finding in findings(recipe, datasets, None, ["one"]) if finding.stops]
    assert str(finding) == (
        "step 'one', split 'train': no picture for 1 of 3 images (train-00001); add the pictures, or leave the images "
        "out"
    )
