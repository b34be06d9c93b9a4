"""The recipe.json of a run: the base of its paths, and probes whose plugin is gone."""

from pathlib import Path

from mmgen.registry import installed
from mmgen.storage import recipe_file


def test_paths_count_from_the_folder_in_which_the_run_was_started(tmp_path, monkeypatch):
    run = tmp_path / "here" / "runs" / "a"
    run.mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "here")
    saved = {recipe_file.STARTED: recipe_file.started_in(run), "name": "a"}
    assert recipe_file.base(run, dict(saved)) == Path()  # as seen from there
    monkeypatch.chdir(tmp_path)
    assert recipe_file.base(run, saved) == tmp_path / "here" and saved == {"name": "a"}
    (tmp_path / "here").rename(tmp_path / "moved")  # the run and the folder above it
    moved = {recipe_file.STARTED: "../.."}
    assert recipe_file.base(tmp_path / "moved/runs/a", moved) == tmp_path / "moved"


def test_a_base_that_cannot_be_a_path(tmp_path):
    assert recipe_file.base(tmp_path, {recipe_file.STARTED: "a\0b"}) == recipe_file.base(tmp_path, {}) == Path()


def test_probes_without_a_plugin_are_left_out():
    probes = {"attention": {"type": "attention"}, "gone": {"type": "of_a_stranger"}, "odd": 3}
    assert recipe_file.without_lost_probes({"probes": probes}, installed()) == {
        "probes": {"attention": {"type": "attention"}, "odd": 3}
    }
    assert recipe_file.without_lost_probes({"probes": 7}, installed()) == {"probes": 7}
