"""Predictions for a full split in the files of official evaluations and leaderboards; scored again from those files."""

import csv
import json
from typing import Literal

import pytest
from click.testing import CliRunner
from kit import small_runs, toys
from kit.refusals import refusal

import mmgen
from mmgen.cli import main
from mmgen.examples import Example
from mmgen.inference.result_file import result_file
from mmgen.parts import Dataset
from mmgen.recipe.load import load
from mmgen.registry import Part, Registry, Source, installed
from mmgen.runs.run import run
from mmgen.storage.generations import read_predictions

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
        cells = json.loads((tmp_path / "s.json").read_text())["rows"]["o.json"]
        assert {name: cell["value"] for name, cell in cells.items()} == pytest.approx(saved_scores(folder, step))


def test_another_split_and_settings_of_the_data(folder, known):
    rows = json.loads(result_file(folder.path, "vqa", ["answers"], "val"))
    assert rows and all(row["question_id"].startswith("val-") for row in rows)
    assert len(json.loads(result_file(folder.path, "vqa", ["answers"], sets=["data.test_size=2"]))) == 8


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

    def share_right(name, right):
        """In percent, of rows whose most probable of four columns is the right one."""
        best = [max(range(4), key=lambda k: float(row[name.format(n % 4, k)])) for n, row in enumerate(rows)]
        return 100 * sum(k == right(n) for n, k in enumerate(best)) / len(rows)

    assert share_right("answer_{1}", lambda n: n % 4) == saved_scores(folder, "pick")["Q->A"]
    rationales = share_right("rationale_conditioned_on_a{0}_{1}", lambda n: (n + 1) % 4)
    assert rationales == saved_scores(folder, "why")["QA->R"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["--as", "vqa2", "--out", "x"],
            "--as vqa2: unknown result format; did you mean 'vqa'?; available: nlvr2",
        ),
        (["--as", "vqa"], "--as vqa: writes --out FILE"),
        (["--as", "vqa", "--step", "pick", "--out", "x"], "step 'pick' predicts choice, but vqa needs label or text"),
    ],
)
def test_what_cannot_be_written_is_a_line(folder, known, tmp_path, arguments, words):
    said = toys.mmgen_here(tmp_path, "predict", str(folder.path), *arguments)
    assert said.returncode == 1 and words in said.stderr and len(said.stderr.splitlines()) == 1
    assert not (tmp_path / "x").exists()


def test_an_export_predicts_for_the_data_of_a_recipe_as_its_run_does(tmp_path):
    run, data = small_runs.drawn("predicts"), small_runs.recipe_of("predicts")
    export = mmgen.load(run, "answers").save(tmp_path / "answers")
    done = toys.mmgen_here(tmp_path, "predict", export, "--as", "vqa", "--data", data, "--out", "out.json")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out.json").read_text() == result_file(run, "vqa", ["answers"])
    assert refusal(result_file, export, "nlvr2", data=data) == (
        f"{export}: step 'answers' and its data have no label 'truth', which nlvr2 needs; "
        "choose another step with --step"
    )
    assert refusal(result_file, run, "vqa", data=data) == (
        f"{run}: --data is for exports; leave it out for a run, which has its own data"
    )
    for command in (["probe", export], ["report", export]):
        refused = CliRunner().invoke(main, [*map(str, command)])
        assert refused.exit_code == 1 and refused.output.startswith("error: ") and refused.output.count("\n") == 1
