"""One step of a run: its files, and that no work is repeated."""

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
