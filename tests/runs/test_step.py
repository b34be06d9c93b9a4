"""The files of a run's steps and features; no work is repeated."""

import json
from types import SimpleNamespace

import pytest
from kit import toys
from kit.stores import FINGERPRINT, names, record
from kit.toys import PLACE, mmgen_here

from mmgen.features.writer import StoreWriter
from mmgen.parts import Picture
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.prepare import fill_stores

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
    assert done.returncode == 1 and done.stderr.startswith("error: metrics.meaning (") and done.stderr.count("\n") == 1
    assert ": training" not in done.stdout and not (tmp_path / PLACE / "steps").exists()


def test_what_a_kill_left_beside_a_finished_store_is_removed(tmp_path):
    """The store has all pictures, so that nothing is extracted."""
    path = tmp_path / "features/image.h5"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
        journal = writer.partial.read_bytes()
        writer.finish()
    writer.partial.write_bytes(journal)
    (tmp_path / "features/image.h5.lock").touch()
    image = {"type": "regions", "extractor": toys.ROI}
    steps = {"image": {"inputs": ["image"], "train": ["image"]}}
    (tmp_path / "toy.toml").write_text(toys.recipe(inputs={"image": image}, steps=steps))
    recipe, _ = load(tmp_path / "toy.toml", installed())
    datasets = SimpleNamespace(pictures=lambda: [Picture("a", lambda: None)])
    accelerator = SimpleNamespace(is_main_process=True, wait_for_everyone=lambda: None)
    fill_stores(recipe, {"image": path}, datasets, accelerator, Progress())
    assert names(path.parent) == ["image.h5"]
