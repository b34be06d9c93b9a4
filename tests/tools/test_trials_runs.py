"""The trial of kills, runs: their recipes are valid, the phase of a run is known, and a loss is found."""

import random
import time
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


def test_a_run_that_resumes_with_other_results_is_found(tmp_path):
    """The result has a letter for every attempt."""
    text = tmp_path / "text"

    def work():
        with text.open("a") as file:
            file.write("x")
        Path("result.txt").write_text(text.read_text())
        time.sleep(0.05)

    def kill(process, draw, seconds):
        while not (process.folder / "result.txt").exists():
            time.sleep(0.001)
        process.kill()
        return True, ""

    surface = runs.Runs("run", "", work, kill, tmp_path / "surface")
    outcome = surface.case(random.Random(0))
    assert (outcome.surface, outcome.tries, outcome.wrong) == ("run", runs.KILLS, ("result.txt differs",))


def test_a_process_that_outlives_its_run_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(forks, "survivors", lambda folder: [1, 2])

    def kill(process, draw, seconds):
        process.kill()
        return True, ""

    surface = runs.Runs("run", "", lambda: time.sleep(0.05), kill, tmp_path / "surface")
    assert surface.case(random.Random(0)).wrong == ("2 processes are left over",) * runs.KILLS
