"""Steps that predict labels: trained, predicted, scored and shown from a recipe, beside steps that write."""

import json
from dataclasses import replace
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from kit import toys
from kit.training import RecordedProgress

import mmgen
from mmgen.errors import RunError
from mmgen.examples import Example, Prediction, Scores
from mmgen.objectives import Objective, TargetReader
from mmgen.parts import Metric
from mmgen.recipe.load import load
from mmgen.registry import Part, Registry, Source, installed
from mmgen.runs.run import run
from mmgen.storage.generations import PREDICTIONS, read_predictions
from mmgen.tensors import Loss, Targets
from mmgen.testing.toy import COLORS, ToyDataset

pytestmark = pytest.mark.slow


class Coloured(mmgen.DatasetConfig):
    """Things whose captions say their colour, which is the label."""

    type: Literal["coloured"] = "coloured"
    labels = ("color",)

    def build(self):
        return ColouredDataset()


class ColouredDataset(ToyDataset):
    def split(self, name):
        return [self._labelled(example) for example in super().split(name)]

    def vocabularies(self):
        return {"color": tuple(COLORS)}

    def _labelled(self, example):
        color, thing = example.id.split("-")
        return replace(example, inputs={"caption": f"a {color} {thing}"}, labels={"color": color})


class WhichColor(mmgen.ObjectiveConfig):
    """The colour of the thing, from the state of [CLS]."""

    type: Literal["which_color"] = "which_color"
    gives = "label"
    required_labels = ("color",)

    def build(self, backbone, vocabularies):
        return WhichColorObjective(backbone, vocabularies["color"])


class ColorReader(TargetReader):
    def __init__(self, known):
        self.known = known

    def collate(self, rows):
        colors = torch.tensor([self.known.index(example.labels["color"]) for example in rows.examples])
        return Targets({"loss": len(colors)}, {"color": colors})


class WhichColorObjective(Objective):
    def __init__(self, backbone, known):
        super().__init__()
        self.reader, self.head = ColorReader(known), torch.nn.Linear(backbone.hidden_size, len(known))

    def forward(self, model, batch, targets):
        logits = self.head(model.encode(batch).first)
        return Loss({"loss": F.cross_entropy(logits, targets.labels["color"], reduction="sum")})

    def predict(self, model, batch, targets):
        shares = self.head(model.encode(batch).first).softmax(-1)
        results = []
        for id_, row in zip(batch.ids, shares.tolist(), strict=True):
            probabilities = dict(zip(self.reader.known, row, strict=True))
            label = max(probabilities, key=probabilities.get)
            results.append(Prediction(id_, {"label": label, "probabilities": probabilities}, probabilities[label]))
        return results


class Right(mmgen.MetricConfig):
    """The share of correct labels."""

    type: Literal["right"] = "right"
    judges = frozenset({"label"})
    required_labels = ("color",)

    def build(self):
        return RightMetric()


class Shaped(Right):
    """Needs a label that no data set here has."""

    type: Literal["shaped"] = "shaped"
    required_labels = ("shape",)


class RightMetric(Metric):
    def score(self, generations, examples):
        per_example = [
            100.0 * (prediction.value["label"] == example.labels["color"])
            for prediction, example in zip(generations, examples, strict=True)
        ]
        return Scores({"right": sum(per_example) / len(per_example)}, {"right": per_example})

    def references(self, examples):
        return Scores({"chance_right": 100 / len(COLORS)})


def registry():
    source = Source("coloured", "tests", "0")
    fakes = [Part(config.kind, config.model_fields["type"].default, config, source) for config in PARTS]
    return Registry(installed().parts + tuple(fakes), ())


PARTS = (Coloured, WhichColor, Right, Shaped)


STEPS = {
    "words": {"inputs": ["caption"], "train": ["backbone"]},
    "colors": {
        "inputs": ["caption"],
        "train": ["backbone"],
        "objectives": ["color"],
        "start": "words",
        "data": {"type": "coloured"},
        "training": {"epochs": 80, "learning_rate": 1e-2},
    },
}


METRICS = {"meaning": {"type": "discovery"}, "right": {"type": "right"}}


def changed(metrics=METRICS, wording=None, **colors) -> str:
    """The recipe with other values in its step of colours; None takes a key away."""
    step = {name: value for name, value in {**STEPS["colors"], **colors}.items() if value is not None}
    return toys.recipe(
        generator={"max_tokens": 8},
        objectives={"color": {"type": "which_color"}, **(wording or {})},
        training={"batch_size": 8, "learning_rate": 3e-3},
        steps={**STEPS, "colors": step},
        data={"train_size": 20, "val_size": 2, "test_size": 4},
        metrics=metrics,
    )


RECIPE = changed()


def recipe_of(folder, text):
    (folder / "toy.toml").write_text(text)
    return load(folder / "toy.toml", registry())[0].model_copy(update={"output": str(folder / "runs")})


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder, progress = tmp_path_factory.mktemp("answers"), RecordedProgress()
    return run(recipe_of(folder, RECIPE), progress=progress), progress.lines


def test_a_label_is_predicted_scored_and_shown_in_a_table_of_its_own(done):
    folder, lines = done
    saved = read_predictions(folder.step("colors"))
    assert [prediction.id for prediction in saved] == [f"{color}-chair" for color in COLORS]
    assert all(
        prediction.value["probabilities"][prediction.value["label"]] == pytest.approx(prediction.score)
        for prediction in saved
    )
    values = json.loads((folder.step("colors") / "scores.json").read_text())["values"]
    assert set(values) == {"right"} and values["right"] == 100.0
    text, labels = (folder.path / "table.md").read_text().split("labels, data 'coloured':")
    assert "| words " in text and "right" not in text and "relevance" in text
    assert "| colors |" in labels and "| chance |" in labels and " 25.00 |" in labels and "relevance" not in labels
    assert any(line.count(" <- ") == 4 and "red" in line and "a red chair" in line for line in lines)
    assert not (folder.step("colors") / "generations.jsonl").exists()


def test_a_second_run_does_nothing_but_restore_missing_scores(done, tmp_path):
    folder, _ = done
    before = (folder.step("colors") / "scores.json").read_bytes()
    (folder.step("colors") / "scores.json").unlink()
    recipe = recipe_of(tmp_path, RECIPE).model_copy(update={"output": str(folder.path.parents[2])})
    stamp = (folder.step("colors") / PREDICTIONS).stat().st_mtime_ns
    run(recipe)
    assert (folder.step("colors") / "scores.json").read_bytes() == before
    assert (folder.step("colors") / PREDICTIONS).stat().st_mtime_ns == stamp


def test_a_loaded_step_predicts_for_examples_without_labels(done, known):
    folder, _ = done
    loaded = mmgen.load(folder.path, "colors")
    (answer,) = loaded.predict_all([Example("mine", {"caption": "a blue boat"})])
    assert answer.value["label"] == "blue" and json.dumps(answer.value)
    words = mmgen.load(folder.path, "words")
    assert words.predict({"caption": "a blue boat"}).value == words.ask({"caption": "a blue boat"}).value
    with pytest.raises(RunError, match="step 'colors' does not write texts, but predicts label; use predict"):
        loaded.ask({"caption": "a blue boat"})


@pytest.fixture
def known(monkeypatch):
    """Registers the parts of this file for the command line."""
    for module in ("inference.load", "inference.best_step"):
        monkeypatch.setattr(f"mmgen.{module}.installed", registry)
