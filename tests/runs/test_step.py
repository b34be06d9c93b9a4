"""The files of a run's steps and features; no work is repeated."""

import json

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

SIZES = {"train_size": 8, "val_size": 2, "test_size": 3}


@pytest.mark.usefixtures("no_page")
def test_a_step_leaves_weights_texts_and_scores_and_is_not_done_again(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe(data=SIZES))
    done = mmgen_here(tmp_path, "run", "toy.toml", "--step", "first")
    assert done.returncode == 0, done.stderr
    folder = tmp_path / PLACE / "steps/first"
    names = {"weights.safetensors", "log.jsonl", "generations.jsonl", "scores.json"}
    assert {path.name for path in folder.iterdir()} == names and [folder] == list(folder.parent.iterdir())
    assert len((folder / "generations.jsonl").read_text().splitlines()) == SIZES["test_size"]
    assert [json.loads(line)["update"] for line in (folder / "log.jsonl").read_text().splitlines()] == [0, 1]
    before = {path: path.stat().st_mtime_ns for path in folder.iterdir()}
    again = mmgen_here(tmp_path, "run", "toy.toml", "--step", "first")
    assert again.returncode == 0 and "nothing to do" in again.stdout
    assert {path: path.stat().st_mtime_ns for path in folder.iterdir()} == before


def test_a_metric_with_wrong_references_ends_the_run_before_training(tmp_path, monkeypatch):
    from mmgen_scenes.metric import DiscoveryMetric

    monkeypatch.setattr(DiscoveryMetric, "references", lambda self, examples: {"relevance": 1.0})
    (tmp_path / "toy.toml").write_text(toys.recipe(data={"train_size": 8, "test_size": 3}))
    done = mmgen_here(tmp_path, "run", "toy.toml")
    assert (
        done.returncode == 1
        and done.stderr.startswith("error: metrics.meaning: returns ")
        and done.stderr.count("\n") == 1
    )
    assert ": training" not in done.stdout and not (tmp_path / PLACE / "steps").exists()
