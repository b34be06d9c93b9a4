"""Scores: columns of metrics; what people's texts and chance score, once for each metric and data."""

import json
from types import SimpleNamespace
from typing import Literal

import pytest
from kit import toys
from mmgen_metrics import CaptionScores

from mmgen import report
from mmgen.configs import MetricConfig
from mmgen.data.datasets import Datasets
from mmgen.errors import RunError
from mmgen.evaluation.score import (
    FILE,
    build_metric,
    merge_metrics,
    reference_scores,
    references_of_others,
    write_scores,
)
from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.run_folder import RunFolder

METRICS = {"overlap": {"type": "captioneval", "tokenizer": "own", "meteor": False}, "variety": {"type": "diversity"}}
ROWS = [
    {"id": "1", "image": "a", "caption": "a dog", "questions": ["is the dog red ?", "is it big ?"]},
    {"id": "2", "image": "a", "caption": "a cat", "questions": ["what color is the dog ?"]},
    {"id": "3", "image": "b", "caption": "a sea", "questions": ["how deep is the sea ?", "is it red ?"]},
    {"id": "4", "image": "c", "caption": "a man", "questions": ["who is the man ?"]},
]


def table_of(folder, rows):
    """The table of a run on these rows, whose only step has written each example's first question."""
    (folder / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    files = dict.fromkeys(("train", "val", "test"), "rows.jsonl")
    inputs = {"caption": {"type": "text"}, "image": {"type": "regions", "features": "x.h5"}}
    steps = {"words": {"inputs": ["caption"], "train": ["backbone"]}}
    data = {"type": "table", "folder": str(folder), "files": files}
    data |= dict.fromkeys(("train_size", "val_size", "test_size"))
    (folder / "toy.toml").write_text(toys.recipe(inputs=inputs, steps=steps, metrics=METRICS, data=data))
    recipe = load(folder / "toy.toml", installed())[0]
    datasets, run = Datasets(recipe), RunFolder(folder / "run")
    examples = datasets.scored_by("words")
    texts = [Generation(example.id, example.targets[0], (), 0.0) for example in examples]
    values = {}
    for name, config in recipe.metrics.items():
        values |= build_metric(name, config).score(texts, examples).values
    run.step("words").mkdir(parents=True)
    write_scores(run.step("words"), Scores(values))
    return report.gather_tables(recipe, run, datasets)[0], examples


def test_chance_is_what_references_of_other_pictures_score(tmp_path):
    table, examples = table_of(tmp_path, ROWS)
    others = references_of_others(examples)
    pictures = {text: row["image"] for row in ROWS for text in row["questions"]}
    assert all(pictures[text.text] != example.inputs["image"] for text, example in zip(others, examples, strict=True))
    chance = {column: cell.value for column, cell in table.of("reference")["chance"].items()}
    config = CaptionScores(tokenizer="own", meteor=False)
    assert chance == build_metric("overlap", config).score(others, examples).values
    assert chance["BLEU-1"] < table.of("step")["words"]["BLEU-1"].value == pytest.approx(100)
    assert "unique" in table.columns and "unique" not in chance  # says nothing about a picture
    assert "chance of overlap: the reference of another picture for each example" in table.notes


class OnDevice(Metric):
    scored = 0  # times

    def prepare(self, pictures, device):
        self.device = device

    def score(self, generations, examples):
        return Scores({})

    def references(self, examples):
        OnDevice.scored += 1
        return Scores({"fit": 90.0, f"chance_{self.device.type}": 10.0}, {}, ("a note",))


class Fit(MetricConfig):
    type: Literal["fit"] = "fit"
    needs_device = True
    size: int = 1

    def build(self):
        return OnDevice()


def test_references_are_scored_once_for_each_metric_and_its_data(tmp_path, monkeypatch):
    monkeypatch.setattr(OnDevice, "scored", 0)
    examples, metrics, own = [Example("1", {}, ("x",)), Example("2", {}, ("y",))], {"fit": Fit()}, {}
    recipe = SimpleNamespace(judging=lambda _: metrics, makes_texts=lambda _: True, scored_data=own.get)
    data = SimpleNamespace(scored_by=lambda _: examples)

    def scores(folder):
        return reference_scores(recipe, ["first", "second"], data, folder)

    first = scores(tmp_path)
    assert first["first"] == first["second"] == {"fit": Scores({"fit": 90.0, "chance_cpu": 10.0}, {}, ("a note",))}
    assert scores(tmp_path) == first and OnDevice.scored == 1
    metrics["fit"] = Fit(size=2)
    assert scores(tmp_path) == scores(tmp_path) == first and OnDevice.scored == 2
    own["second"] = Fit()  # any config
    assert scores(tmp_path) == first and OnDevice.scored == 3
    (tmp_path / FILE).write_text('{"key": {"values": {"fit": "90"}}}')
    with pytest.raises(RunError, match="damaged: key.values.fit: must be a number"):
        scores(tmp_path)


def test_a_metric_that_needs_pictures_is_left_out_unless_it_is_built(tmp_path):
    class Seeing(Fit):
        needs_pictures = True

    metric = OnDevice()
    metric.prepare(None, SimpleNamespace(type="cuda"))
    judging = {"judging": lambda _: {"seeing": Seeing()}, "makes_texts": lambda _: False, "scored_data": lambda _: None}
    recipe, data = SimpleNamespace(**judging), SimpleNamespace(scored_by=lambda _: [Example("1", {})])
    assert reference_scores(recipe, ["first"], data, tmp_path) == {"first": {}}
    built = reference_scores(recipe, ["first"], data, tmp_path, {"seeing": metric})
    assert built["first"]["seeing"].values == {"fit": 90.0, "chance_cuda": 10.0}
    assert reference_scores(recipe, ["first"], data, tmp_path) == built


def test_two_metrics_of_one_type_have_separate_columns():
    first, second = Scores({"bleu": 1.0, "only": 3.0}, {"bleu": [1.0]}, ("a",)), Scores({"bleu": 2.0}, {}, ("a",))
    assert merge_metrics({"short": first, "long": second}) == Scores(
        {"short.bleu": 1.0, "only": 3.0, "long.bleu": 2.0}, {"short.bleu": [1.0]}, ("a",)
    )
