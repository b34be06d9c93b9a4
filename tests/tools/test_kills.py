"""The script that kills runs: its recipes are valid, it knows the phase of a run, and it sees every difference."""

import numpy as np
import pytest
from kit.stores import fill, record

from mmgen.recipe.load import load
from mmgen.registry import installed
from tools import kills


@pytest.mark.parametrize("large", [False, True])
def test_its_recipes_have_no_mistakes(tmp_path, large):
    (tmp_path / "kills.toml").write_text(kills.recipe(large))
    recipe, _ = load(tmp_path / "kills.toml", installed())
    assert tuple(recipe.steps) == kills.STEPS
    assert recipe.backbone.hidden_size == (768 if large else 64)


def test_the_phase_follows_from_the_files(tmp_path):
    place = tmp_path / kills.PLACE
    phases = [kills.phase(tmp_path)]
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
        phases.append(kills.phase(tmp_path))
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


def test_differences_are_files_whose_content_differs(tmp_path):
    """Features are compared by their records, since the file may be laid out differently."""
    for folder, value in (("left", 1), ("right", 1), ("other", 2)):
        steps = tmp_path / folder / kills.PLACE / "steps"
        steps.mkdir(parents=True)
        (steps / "scores.json").write_text(str(value))
        (steps.parent / "times.json").write_text(folder)
        features = tmp_path / folder / kills.PLACE.parent / "features"
        features.mkdir()
        entry = record("1")
        fill(features / "image.h5", [record("1", features=np.full_like(entry.features, value))]).close()
    assert kills.differences(tmp_path / "left", tmp_path / "right") == []
    assert kills.differences(tmp_path / "left", tmp_path / "other") == [
        "runs/kills/default/features/image.h5",
        "runs/kills/default/seed-0/steps/scores.json",
    ]
