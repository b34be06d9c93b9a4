"""The trial of kills, runs: their recipes are valid, the phase of a run is known, and a loss is found."""

import multiprocessing
import os
import random
import re
import sys
import tempfile
import time
from multiprocessing import forkserver
from pathlib import Path

import pytest

from mmgen.recipe.load import load
from mmgen.registry import installed
from tools.trials import forks, runs

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("recipe", [runs.RECIPE, runs.SIDE_BY_SIDE])
def test_the_recipes_have_no_mistakes(tmp_path, recipe):
    (tmp_path / "kills.toml").write_text(recipe)
    loaded_recipe, _ = load(tmp_path / "kills.toml", installed())
    assert loaded_recipe.name == runs.PLACE.parts[1] and set(runs.STEPS) <= set(loaded_recipe.steps)


def test_the_phase_follows_from_the_files(tmp_path):
    place = tmp_path / runs.PLACE
    phases = [runs.phase(tmp_path)]
    for file in (
        "../features/image.h5.partial",
        "../features/.image.h5.assembling",
        "../features/image.h5",
        "steps/caption/log.jsonl",
        "steps/caption/.checkpoint.safetensors.7.partial",
        "steps/caption/weights.safetensors",
        "steps/caption/generations.jsonl",
        "steps/caption/scores.json",
    ):
        (place / file).parent.mkdir(parents=True, exist_ok=True)
        (place / file).touch()
        phases.append(runs.phase(tmp_path))
        if file.endswith((".assembling", ".7.partial")):
            (place / file).unlink()
    assert phases == [
        "starting",
        "extracting",
        "putting features together",
        "beginning a step",
        "learning",
        "writing a checkpoint",
        "writing",
        "scoring",
        "beginning a step",
    ]
    assert set(runs.PHASES) >= set(phases[1:])


def test_the_phase_of_steps_side_by_side_follows_from_the_files(tmp_path):
    phases = [runs.phase_side_by_side(tmp_path)]
    for file in (
        "caption/log.jsonl",
        "apart/log.jsonl",
        "caption/weights.safetensors",
        "apart/weights.safetensors",
        "caption/generations.jsonl",
        "caption/scores.json",
        "apart/generations.jsonl",
        "apart/scores.json",
        "both/log.jsonl",
        "both/weights.safetensors",
        "both/generations.jsonl",
        "both/scores.json",
    ):
        path = tmp_path / runs.PLACE / "steps" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        phases.append(runs.phase_side_by_side(tmp_path))
    single, double, begin, writing, scoring, report = runs.SIDE_BY_SIDE_PHASES
    expected = [single, double, single, writing, scoring, writing, scoring, begin, single, writing, scoring, report]
    assert phases == ["starting", *expected]


def killed_often(folder, work, begun=lambda folder: True):
    """The surface of work that goes on until it is killed, as a busy machine may end shorter work before a kill. The
    undisturbed run ends, and the run after the last kill. `begun(folder)`: whether the work may be killed."""
    last, kills = folder / "last", []

    def going_on():
        work()
        while not last.exists():
            time.sleep(0.001)

    def kill(process, draw, seconds):
        while not begun(process.folder):
            time.sleep(0.001)
        process.kill()
        while not process.ended():
            time.sleep(0.001)
        kills.append(process.pid)
        if len(kills) == runs.KILLS:
            last.touch()
        return True

    last.touch()
    surface = runs.Runs("run", "", going_on, kill, folder / "surface")
    last.unlink()
    return surface


def test_a_run_that_resumes_with_other_results_is_found(tmp_path):
    """The result has a letter for every attempt."""
    text = tmp_path / "text"

    def work():
        with text.open("a") as file:
            file.write("x")
        Path("result.txt").write_text(text.read_text())

    surface = killed_often(tmp_path, work, lambda folder: (folder / "result.txt").exists())
    outcome = surface.case(random.Random(0))
    assert (outcome.surface, outcome.tries, outcome.wrong) == ("run", runs.KILLS, ("result.txt differs",))
    assert outcome.phases == {"starting": runs.KILLS}


def test_a_torn_file_of_a_killed_run_is_found(tmp_path):
    """Also one whose bytes may differ."""

    def work():
        Path("environment.json").write_text("{}" if (tmp_path / "last").exists() else "{")

    surface = killed_often(tmp_path, work, lambda folder: (folder / "environment.json").exists())
    wrong = surface.case(random.Random(0)).wrong
    text = "killed while starting: environment.json is torn: JSONDecodeError: "
    assert len(wrong) == runs.KILLS and all(line.startswith(text) for line in wrong)


def test_a_run_without_its_page_is_found(tmp_path):
    def work():
        if not (tmp_path / "begun").exists():
            Path("report.html").write_text("<html></html>")

    surface = killed_often(tmp_path, work)
    (tmp_path / "begun").touch()
    assert surface.case(random.Random(0)).wrong == ("report.html is missing",)


def test_a_process_that_outlives_its_run_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(forks, "survivors", lambda folder: [1, 2])
    surface = killed_often(tmp_path, lambda: None)
    assert surface.case(random.Random(0)).wrong == ("2 processes are left over",) * runs.KILLS


def test_a_traceback_of_a_process_that_outlives_its_run_is_found(tmp_path):
    """It is printed after the run has been killed. What an undisturbed run prints is right."""
    begun, undisturbed, kills = tmp_path / "begun", tmp_path / "undisturbed", []

    def work():
        print("a note", file=sys.stderr)
        parent = os.getpid()
        if not os.fork():
            begun.write_text(str(parent))
            while os.getppid() == parent and not undisturbed.exists():
                time.sleep(0.001)
            if os.getppid() != parent:
                print("Traceback (most recent call last):\nEOFError", file=sys.stderr)
            os._exit(0)
        os.wait()

    def kill(process, draw, seconds):
        while begun.read_text() != str(process.pid):
            time.sleep(0.001)
        process.kill()
        kills.append(process.pid)
        while len(kills) == runs.KILLS and not undisturbed.exists():  # the run after the last kill
            if process.ended():
                undisturbed.touch()
        return True

    undisturbed.touch()
    surface = runs.Runs("run", "", work, kill, tmp_path / "surface")
    undisturbed.unlink()
    text = "a traceback on stderr: a note\nTraceback (most recent call last):\nEOFError"
    assert surface.case(random.Random(0)).wrong == (f"killed while starting: {text}",) * runs.KILLS


def test_temporary_files_of_a_run_are_found(tmp_path):
    surface = killed_often(tmp_path, lambda: Path(tempfile.mkdtemp(prefix="pymp-"), "listener").touch())
    wrong = surface.case(random.Random(0)).wrong
    assert wrong and all(re.fullmatch(r"pymp-\w+/listener is left over among temporary files", text) for text in wrong)


def print_and_leave():
    print("Traceback (most recent call last):\nEOFError", file=sys.stderr)
    Path(tempfile.gettempdir(), "left").touch()


def test_what_the_processes_of_a_run_print_and_leave_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(runs, "import_all", list)
    server = runs.ForkServer(tmp_path)
    assert server.complaints() == []
    process = multiprocessing.get_context("forkserver").Process(target=print_and_leave)
    process.start()
    process.join()
    left = "left is left over among temporary files"
    assert server.complaints() == [
        "a process of the run prints: Traceback (most recent call last):\nEOFError",
        left,
    ]
    assert server.complaints() == [left] and "TMPDIR" not in os.environ
    forkserver._forkserver._stop()  # later tests have one that prints elsewhere
