"""A run folder: changed settings remove results and keep weights; paths of a moved run; the record of a run."""

import shlex
import sys
import threading
import time
from pathlib import Path

import pytest
from kit import toys

from mmgen.files import write_json
from mmgen.recipe.load import load
from mmgen.recipe.tables import Recipe
from mmgen.registry import installed
from mmgen.storage.environment import environment
from mmgen.storage.model_files import features_file
from mmgen.storage.run_folder import STARTED, RunFolder

BEAMS_STEP = """
[steps.beams]
start = "first"
train = []
decoding = { num_beams = 2 }
"""
BEAMS, VARIETY = "decoding.num_beams=3", "metrics.variety.type=diversity"
STEP = {"weights.safetensors", "log.jsonl", "generations.jsonl", "scores.json"}
WRITTEN = {"generations.jsonl", "scores.json"}  # of a step that trains nothing, and has a decoding of its own


def recipe(folder: Path, *sets: str) -> Recipe:
    """The toy recipe with other settings, and runs in the folder."""
    path = folder / "toy.toml"
    path.write_text(toys.RECIPE + BEAMS_STEP)
    return load(path, installed(), None, [f'output="{folder}/runs"', *sets])[0]


@pytest.fixture
def run(tmp_path) -> RunFolder:
    """A finished run with small files."""
    first = recipe(tmp_path)
    run = RunFolder.of(first)
    for step in first.steps:
        run.step(step).mkdir(parents=True)
        for name in STEP if first.steps[step].train else WRITTEN:
            (run.step(step) / name).write_text("{}")
    (run.path / "probes").mkdir()
    for path in (run.path / "table.md", run.path / "report.html", run.path.parent / "table.md"):
        path.write_text("as it was")
    write_json(run.path / "recipe.json", first.identity())
    return run


def left(run: RunFolder) -> dict[str, set[str]]:
    """The files in each step's folder."""
    return {step.name: {path.name for path in step.iterdir()} for step in (run.path / "steps").iterdir()}


@pytest.mark.parametrize(
    ("change", "outdated", "said"),
    [
        (BEAMS, {"first": WRITTEN, "second": WRITTEN}, "decoding has changed: texts "),
        ("steps.beams.decoding.num_beams=4", {"beams": WRITTEN}, "decoding has changed: texts "),
        (VARIETY, dict.fromkeys(("first", "second", "beams"), {"scores.json"}), "metrics have changed: scores are "),
    ],
)
def test_a_change_takes_what_depends_on_it_and_keeps_weights(run, tmp_path, change, outdated, said):
    before, changed = left(run), recipe(tmp_path, change)
    assert {step: {*files} for step, files in run.outdated(changed).items()} == outdated
    assert run.retire(changed).startswith(said)
    assert left(run) == {step: files - outdated.get(step, set()) for step, files in before.items()}
    assert (run.path / "probes").exists() == (change == VARIETY)
    shown = (run.path / "table.md", run.path / "report.html", run.path.parent / "table.md")
    assert not [path for path in shown if path.exists()]
    assert not run.outdated(changed) and run.identity() == changed.identity()


def test_a_run_waits_for_a_child_of_a_stopped_run(run, caplog):
    """The lock of a step, which its child takes, is waited for before anything is read or written."""
    order = []
    with run.step_locked("first"):
        waiting = threading.Thread(target=lambda: _lock(run, order))
        waiting.start()
        while "step 'first': waiting for another process" not in caplog.text:
            time.sleep(0.01)
        order.append("child")
    waiting.join()
    assert order == ["child", "run"] and left(run)["first"] == STEP


def _lock(run: RunFolder, order: list[str]) -> None:
    with run.locked():
        order.append("run")


def with_features(**data) -> RunFolder:
    """A run in the current folder, as far as the name of its features needs it."""
    changes = {"inputs": {"image": {"type": "regions", "extractor": toys.ROI}}, "data": data}
    steps = {"first": {"inputs": ["image"], "train": ["image"]}}
    identity = toys.loaded(Path(), toys.recipe(**changes, steps=steps)).identity()
    place = Path("runs/toy/default/seed-0")
    write_json(place / "recipe.json", identity | {STARTED: "../../../.."})
    write_json(place / "data.json", {"fingerprint": "x"})
    return RunFolder(place)


def file_of(folder: RunFolder) -> Path:
    loaded = folder.recipe(installed())
    return features_file(loaded.inputs["image"].extractor, loaded, folder)


def test_a_moved_run_finds_its_features_and_other_pictures_have_other_features(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert len({file_of(with_features(image_size=size)) for size in (64, 96, 64)}) == 2
    sizes = dict.fromkeys(("train_size", "val_size", "test_size"))
    folder = with_features(type="table", folder="texts", **sizes)
    before = file_of(folder)
    monkeypatch.chdir(tmp_path)
    Path("here").rename("there")
    moved = RunFolder("there" / folder.path)
    assert moved.recipe(installed()).data.folder == Path("there/texts")
    assert file_of(moved) == "there" / before


def test_the_command_can_be_pasted_and_what_can_change_the_result_is_prose(tmp_path, monkeypatch):
    typed = ["run", "toy.toml", "--set", 'description="two words"']
    monkeypatch.setattr(sys, "argv", ["somewhere/mmgen", *typed])
    record = environment(recipe(tmp_path))
    assert shlex.split(record["command"]) == ["mmgen", *typed]
    assert "`" not in record["can change the result"] and record["can change the result"].endswith(".")
