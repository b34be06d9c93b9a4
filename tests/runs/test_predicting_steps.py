"""Steps that predict labels: trained, predicted, scored and shown from a recipe, beside steps that write."""

import json
import shutil
from dataclasses import replace
from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from kit import toys
from kit.training import RecordedProgress

import mmgen
from mmgen.errors import DataError, PluginError, RecipeError, RunError
from mmgen.evaluation.answers import predict
from mmgen.examples import All, Example, Prediction, Scores
from mmgen.objectives import Objective, TargetReader
from mmgen.parts import Metric
from mmgen.recipe.load import load
from mmgen.registry import Part, Registry, Source, installed
from mmgen.runs.rescore import rescore
from mmgen.runs.run import run
from mmgen.storage.generations import PREDICTIONS, read_predictions
from mmgen.storage.scored_examples import ScoredExamples, keep
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
    text, labels = (folder.path / "table.md").read_text().split("labels, data 'toy':")
    assert "| words " in text and "right" not in text and "relevance" in text
    assert "| colors |" in labels and "| chance |" in labels and " 25.00 |" in labels and "relevance" not in labels
    assert any(line.count(" <- ") == 4 and "red" in line and "a red chair" in line for line in lines)
    assert not (folder.step("colors") / "generations.jsonl").exists()


def test_the_page_shows_texts_and_labels(done):
    folder, lines = done
    page = (folder.path / "report.html").read_text(encoding="utf-8")
    assert not any("was not written" in line for line in lines)
    assert page.count("<article") == 8 and page.count('data-step="words"') == 4 == page.count('data-step="colors"')
    assert page.count("{&#34;label&#34;: &#34;") == 4 and "a red chair" in page  # JSON: no renderer knows "color"


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
    with pytest.raises(RunError, match="step 'colors' does not write texts, but predicts label; use predict"):
        loaded.generate([Example("mine", {"caption": "a blue boat"})])
    words = mmgen.load(folder.path, "words")
    assert words.predict({"caption": "a blue boat"}).value == words.ask({"caption": "a blue boat"}).value
    with pytest.raises(RunError, match="step 'colors' does not write texts, but predicts label; use predict"):
        loaded.ask({"caption": "a blue boat"})


@pytest.fixture
def known(monkeypatch):
    """Registers the parts of this file for the command line."""
    for module in ("inference.load", "inference.best_step", "runs.rescore"):
        monkeypatch.setattr(f"mmgen.{module}.installed", registry)


def test_a_finished_run_answers_from_the_command_line(done, known, tmp_path):
    folder, _ = done
    said = toys.mmgen_here(tmp_path, "predict", str(folder.path), "--input", "caption=a green boat")
    first, second, *_ = said.stdout.splitlines()
    assert said.returncode == 0 and second.split()[1] == "green" and second.split()[0].endswith("%")
    assert "predicted by step 'colors', which reads caption" in said.stderr
    (tmp_path / "ask.jsonl").write_text('{"id": "1", "caption": "a red cat"}\n{"id": "2", "image": "x"}\n')
    arguments = ("ask.jsonl", "--step", "colors", "--out", "told.jsonl")
    said = toys.mmgen_here(tmp_path, "predict", str(folder.path), *arguments)
    lines = [json.loads(line) for line in (tmp_path / "told.jsonl").read_text().splitlines()]
    assert lines[0]["value"]["label"] == "red" and set(lines[0]) == {"id", "value", "score"} and "error" in lines[1]
    said = toys.mmgen_here(tmp_path, "generate", str(folder.path), "--input", "caption=a red cat")
    assert said.returncode == 0 and "written by step 'words'" in said.stderr
    said = toys.mmgen_here(tmp_path, "predict", str(folder.path), "--step", "words", "--input", "caption=a red cat")
    assert "step 'words' writes texts; use `mmgen generate`" in said.stderr


def test_labels_are_scored_again_beside_texts(done, known):
    folder, _ = done
    rescored = rescore(folder.path)
    assert list(rescored.rows) == ["words", "colors"]
    assert rescored.table.strip() == (folder.path / "table.md").read_text().removeprefix("# toy\n\n").strip()
    assert rescored.rows["colors"].per_example == {"right": [100.0] * 4}
    assert rescored.ids["colors"] == tuple(f"{color}-chair" for color in COLORS) and len(rescored.ids["words"]) == 4
    (only,) = rescore(folder.path, ["right"]).rows
    assert only == "colors"


def test_a_run_is_scored_from_the_command_line_with_other_metrics(done, known, tmp_path):
    folder, _ = done
    said = toys.mmgen_here(
        tmp_path, "score", folder.path, "--metric", "right", "--metric", "diversity", "--json", "all.json"
    )
    assert said.returncode == 0 and "labels, data 'toy':" in said.stdout and "distinct-1" in said.stdout
    rows = json.loads((tmp_path / "all.json").read_text())
    assert rows["colors"]["per_example"]["id"][0] == "red-chair" and "words" in rows
    assert rows["colors"]["per_example"]["right"][0] == 100.0


def test_a_metric_that_judges_what_no_step_gives_is_refused(done, known, tmp_path):
    folder, _ = done
    shutil.copytree(folder.path, tmp_path / "run")
    (tmp_path / "run/steps/colors" / PREDICTIONS).unlink()
    for name, judged in (("right", "label"), ("choice_accuracy", "choice")):
        said = toys.mmgen_here(tmp_path, "score", "run", "--metric", name)
        assert (
            said.stderr
            == f"error: metric {name}: judges {judged}; no step of this run has answers that it could score\n"
        )
    assert list(rescore(tmp_path / "run").rows) == ["words"]


def test_predictions_are_scored_from_the_examples_that_the_run_keeps(done, known, tmp_path, monkeypatch):
    folder, _ = done

    def gone(self):
        raise DataError("coloured.json: no such file")

    monkeypatch.setattr(Coloured, "build", gone)
    assert rescore(folder.path).rows["colors"].values == {"right": 100.0}
    (folder.path / "examples/colors.jsonl").rename(tmp_path / "away")
    with pytest.raises(DataError, match="coloured.json: no such file"):
        rescore(folder.path)
    (tmp_path / "away").rename(folder.path / "examples/colors.jsonl")


@pytest.mark.parametrize(
    "inputs, labels",
    [
        ({"image": All(("a", "b")), "statement": "true ?"}, {"truth": True}),
        ({"image": "a", "question": "who ?", "question_mentions": All(((0, 3, (1, 2)),))}, {"choices": ("x", "y")}),
        ({"image": "a", "caption": ("one", "two")}, {"phrases": ((0, 3, (0.1, 0.2, 0.5, 1.0)),)}),
        ({"image": "a"}, {"answers": {"red": 0.9, "dark red": 0.3}, "choices": ("x", "y"), "choice": 1}),
    ],
)
def test_inputs_and_labels_are_kept_as_they_were(tmp_path, inputs, labels):
    example = Example("one", inputs, ("a",), {"group": "g"}, labels)
    recipe, scored = recipe_of(tmp_path, RECIPE), OneSplit([example])
    keep(recipe, scored, tmp_path)
    assert list(ScoredExamples(recipe, tmp_path).scored_by("colors")) == [example]


class OneSplit:
    def __init__(self, examples):
        self.examples = examples

    def scored_by(self, step):
        return self.examples


def test_what_an_objective_predicts_is_checked():
    model = toys.model()
    model.objectives["color"] = head = WhichColorObjective(model.backbone, tuple(COLORS))
    example = Example("e", {"caption": "a red ball"})
    for wrong, words in (
        ([], "predict returns answers to 0 examples, not to 1"),
        ([Prediction("x", 1, 0.5)], r"predict returns answers to \['x'\]; expected \['e'\]"),
    ):
        head.predict = lambda *_, wrong=wrong: wrong
        with pytest.raises(PluginError, match=words):
            predict(model, [example], "color", ["caption"])


@pytest.mark.parametrize(
    "text, words",
    [
        (changed(data=None), "'color' needs examples with the label 'color', but data 'scenes' has: none"),
        (changed({"right": {"type": "right"}}), ""),
        (
            changed(data=[{"type": "coloured"}, {"type": "scenes"}]),
            ": steps.colors.data.1.objectives: 'color' needs examples with the label 'color', but data 'scenes' has",
        ),
        (
            changed(
                wording={"words": {"type": "masked_words"}},
                data=[{"type": "scenes", "inputs": ["caption"]}, {"type": "coloured"}],
                objectives=["color", "words"],
            ),
            ": steps.colors.evaluate: the step is scored on its first data set, 'scenes', which has no label 'color'",
        ),
        (
            changed(objectives=["color", "generator"]),
            "'color' and 'generator' both make predictions, but only one objective per step can; use two steps",
        ),
        (changed(evaluate=False), "metrics.right: scores label, but the steps predict text; remove this metric"),
        (
            changed({**METRICS, "shaped": {"type": "shaped"}}),
            "metrics.shaped: needs examples with the label 'shape', but no data set has them; remove it",
        ),
        (
            changed() + '[steps.last]\ninputs = ["caption"]\ntrain = ["backbone"]\nevaluate = "own"',
            'steps.last.evaluate: "own" needs a data set of the step; add [steps.last.data], or set evaluate = true',
        ),
    ],
)
def test_what_does_not_fit_is_reported_before_training(tmp_path, text, words):
    if not words:
        recipe_of(tmp_path, text)
        return
    with pytest.raises(RecipeError) as error:
        recipe_of(tmp_path, text)
    assert words in str(error.value)
