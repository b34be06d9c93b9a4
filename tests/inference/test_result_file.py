"""Predictions for a full split in the files of official evaluations and leaderboards; scored again from those files."""

import csv
import json
from typing import Literal

import pytest
from click.testing import CliRunner
from kit import toys
from mmgen_objectives.tasks import TrueOrFalse
from mmgen_tasks import PairAccuracy, VqaAccuracy

import mmgen
from mmgen.cli import main
from mmgen.examples import Example
from mmgen.inference.result_file import mismatch, result_file
from mmgen.parts import Dataset
from mmgen.recipe.load import load
from mmgen.registry import Part, Registry, Source, installed
from mmgen.runs.run import run
from mmgen.storage.generations import PREDICTIONS, read_predictions

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]

ANSWERS = ("it is red", "it is blue", "he is cold", "she is big")


class Reasons(mmgen.DatasetConfig):
    """Questions with four answers, and why: as VCR's, without pictures."""

    type: Literal["reasons"] = "reasons"
    labels = ("choices", "choice")
    subtask: Literal["answer", "rationale", "every"] = "answer"

    def build(self):
        return ReasonsDataset(self.subtask)


class ReasonsDataset(Dataset):
    def __init__(self, subtask):
        self.subtask = subtask

    def splits(self):
        return ("train", "val", "test")

    def split(self, name):
        every = {"answer": ["answer"], "rationale": ["rationale"]}
        every["every"] = ["answer", *(f"rationale-{k}" for k in range(4))]
        return [self._example(f"{name}-{n}", n, subtask) for n in range(5) for subtask in every[self.subtask]]

    def _example(self, item, n, subtask):
        task, _, answer = subtask.partition("-")
        labels = {"choices": ANSWERS} | ({} if answer else {"choice": n % 4 if task == "answer" else (n + 1) % 4})
        question = "why?" if task == "answer" else f"why? {ANSWERS[int(answer or n % 4)]}"
        return Example(f"{item}-{subtask}", {"question": f"{n} {question}"}, (), {"asks": task, "item": item}, labels)

    def describe(self):
        return {"name": "reasons"}


def registry():
    return Registry((*installed().parts, Part("dataset", "reasons", Reasons, Source("reasons", "tests", "0"))), ())


def choosing(**more):
    """A step that chooses an answer."""
    named = {"inputs": ["question", "choice"], "train": ["backbone"], "objectives": ["pick"]}
    return {**named, "data": {"type": "reasons", **more}}


RECIPE = toys.recipe(
    inputs={"question": {"type": "text", "append_mask": True}, "choice": {"type": "text"}},
    generator={"max_tokens": 6},
    objectives={"answers": {"type": "answer_classes"}, "pick": {"type": "multiple_choice"}},
    training={"epochs": 2, "learning_rate": 5e-3},
    steps={
        "answers": {"inputs": ["question"], "train": ["backbone"], "objectives": ["answers"]},
        "words": {"inputs": ["question"], "train": ["backbone"]},
        "pick": choosing(),
        "why": choosing(subtask="rationale"),
    },
    data={"type": "scene_answers", "train_size": 20, "test_size": 12},
    metrics={"accuracy": {"type": "vqa_accuracy"}, "choices": {"type": "choice_accuracy"}},
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("results")
    (place / "toy.toml").write_text(RECIPE)
    return run(load(place / "toy.toml", registry())[0].model_copy(update={"output": str(place / "runs")}))


@pytest.fixture
def known(monkeypatch):
    """Registers the data set of this file for all commands."""
    for module in ("inference.result_file", "inference.load"):
        monkeypatch.setattr(f"mmgen.{module}.installed", registry)
    monkeypatch.setattr("mmgen.registry.installed", registry)


def saved_scores(folder, step):
    return json.loads((folder.step(step) / "scores.json").read_text())["values"]


def test_answers_are_written_as_vqas_results_and_score_the_same(folder, known, tmp_path):
    said = toys.mmgen_here(tmp_path, "predict", str(folder.path), "--as", "vqa", "--step", "answers", "--out", "o.json")
    assert said.returncode == 0 and said.stdout.endswith("\no.json: written\n"), said.stderr
    rows = json.loads((tmp_path / "o.json").read_text())
    saved_predictions = read_predictions(folder.step("answers"))
    assert [(row["question_id"], row["answer"]) for row in rows] == [
        (prediction.id, prediction.value["label"]) for prediction in saved_predictions
    ]
    for step in ("answers", "words"):  # a head's labels, and what the generator writes in its place
        (tmp_path / "o.json").write_text(result_file(folder.path, "vqa", [step]))
        arguments = ["score", tmp_path / "o.json", "--references", folder.path, "--metric", "vqa_accuracy"]
        said = CliRunner().invoke(main, [*map(str, arguments), "--json", str(tmp_path / "s.json")])
        assert said.exit_code == 0, said.output
        scores = json.loads((tmp_path / "s.json").read_text())["values"]
        assert scores == {str(tmp_path / "o.json"): pytest.approx(saved_scores(folder, step))}


class Mixed(Reasons):
    """Examples with labels of two tasks."""

    type: Literal["mixed"] = "mixed"
    labels = ("truth", "answers")


def test_a_result_file_takes_only_predictions_of_its_own_label(tmp_path):
    (tmp_path / "toy.toml").write_text(RECIPE)
    recipe = load(tmp_path / "toy.toml", registry())[0]
    step = recipe.steps["answers"].model_copy(update={"objectives": ("true",)})
    changes = {"objectives": {**recipe.objectives, "true": TrueOrFalse()}, "data": Mixed()}
    recipe = recipe.model_copy(update={**changes, "steps": {**recipe.steps, "true": step}})
    assert mismatch(recipe, "true", VqaAccuracy, "vqa") == "step 'true' predicts 'truth', but vqa needs 'answers'"
    assert mismatch(recipe, "answers", PairAccuracy, "nlvr2") == (
        "step 'answers' predicts 'answers', but nlvr2 needs 'truth'"
    )
    assert not mismatch(recipe, "answers", VqaAccuracy, "vqa") and not mismatch(recipe, "true", PairAccuracy, "nlvr2")


def test_another_split_can_be_asked_for(folder, known):
    rows = json.loads(result_file(folder.path, "vqa", ["answers"], "val"))
    assert rows and all(row["question_id"].startswith("val-") for row in rows)


def test_settings_of_the_data(folder, known):
    assert len(json.loads(result_file(folder.path, "vqa", ["answers"], sets=["data.test_size=2"]))) < len(
        json.loads(result_file(folder.path, "vqa", ["answers"]))
    )


def test_rationales_of_all_answers_are_written_for_vcr_by_two_steps(folder, known, tmp_path):
    sets = ["steps.why.data.subtask=every"]
    (tmp_path / "o.csv").write_text(result_file(folder.path, "vcr", ["pick", "why"], sets=sets))
    rows = list(csv.DictReader((tmp_path / "o.csv").read_text().splitlines()))
    assert [row["annot_id"] for row in rows] == [f"test-{n}" for n in range(5)] and len(rows[0]) == 21
    for row, answer in zip(
        rows, read_predictions(folder.step("pick")), strict=True
    ):  # of the first step, not the second
        assert [float(row[f"answer_{k}"]) for k in range(4)] == pytest.approx(answer.value["probabilities"], abs=1e-5)
        assert sum(float(row[f"rationale_conditioned_on_a2_{k}"]) for k in range(4)) == pytest.approx(1, abs=1e-5)
    words = {"img_fn": "a.jpg", "objects": [], "question": ["why"]}
    words |= {f"{task}_choices": [[text] for text in ANSWERS] for task in ("answer", "rationale")}
    truth = [
        {**words, "annot_id": f"test-{n}", "answer_label": n % 4, "rationale_label": (n + 1) % 4} for n in range(5)
    ]
    (tmp_path / "test.jsonl").write_text("".join(json.dumps(item) + "\n" for item in truth))
    arguments = ["o.csv", "--references", "test.jsonl", "--metric", "choice_accuracy", "--json", "s.json"]
    said = toys.mmgen_here(tmp_path, "score", *arguments)
    assert said.returncode == 0, said.stderr
    scores = json.loads((tmp_path / "s.json").read_text())["values"]["o.csv"]
    assert (
        scores["Q->A"] == saved_scores(folder, "pick")["Q->A"]
        and scores["QA->R"] == saved_scores(folder, "why")["QA->R"]
    )


def test_predictions_of_a_step_are_scored_with_the_data_that_it_brings(folder, known, tmp_path):
    predictions_file = str(folder.step("pick") / PREDICTIONS)
    (tmp_path / "toy.toml").write_text(RECIPE)
    for references in (folder.path, tmp_path / "toy.toml"):
        arguments = ["--references", str(references), "--step", "pick", "--metric", "choice_accuracy"]
        said = toys.mmgen_here(tmp_path, "score", predictions_file, *arguments, "--json", "s.json")
        assert said.returncode == 0, said.stderr
        scores = json.loads((tmp_path / "s.json").read_text())["values"]
        assert scores == {predictions_file: saved_scores(folder, "pick")}
        assert "| Q->A " in said.stdout and "95 %: bootstrap over the examples' images" in said.stdout
    said = toys.mmgen_here(tmp_path, "score", predictions_file, *arguments[:-3], "picks", *arguments[-2:])
    assert (
        "--step picks: the recipe has no such step; did you mean 'pick'?; available: answers, words, pick, why"
        in said.stderr
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--as", "vqa2", "--out", "x"],
            "--as vqa2: unknown result format; did you mean 'vqa'?; available: boxes, nlvr2",
        ),
        (["--as", "vqa"], "--as vqa: requires --out FILE"),
        (
            ["p.png", "--as", "vqa", "--out", "x"],
            "--as vqa: predicts for a split of the data; leave out pictures and --input",
        ),
        (
            ["--as", "vqa", "--out", "/dev/null"],
            "error: /dev/null: already exists and would be replaced; choose another name",
        ),
        (["--as", "vqa", "--step", "pick", "--out", "x"], "step 'pick' predicts choice, but vqa needs label or text"),
        (["--as", "boxes", "--out", "x"], "no trained step predicts region for boxes"),
        (
            ["--as", "vcr", "--out", "x"],
            "VCR's file has the rationales of all four answers",
        ),
        (
            ["--as", "vcr", "--set", "backbone.num_hidden_layers=2", "--out", "x"],
            "--set backbone.num_hidden_layers=2: the settings of a trained run are fixed",
        ),
        (["--as", "vqa", "--split", "exam", "--out", "x"], "exam"),
        (["--split", "val", "--input", "question=why"], "require --as"),
    ],
)
def test_what_cannot_be_written_is_a_line(folder, known, tmp_path, arguments, words):
    said = toys.mmgen_here(tmp_path, "predict", str(folder.path), *arguments)
    assert said.returncode == 1 and words in said.stderr and len(said.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()
