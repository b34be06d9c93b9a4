"""Runs whose [decoding] or [metrics] have changed: weights stay, texts and scores are those of a fresh run."""

import json
import shutil
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]

RECIPE = toys.recipe(data={"train_size": 16, "test_size": 4})
BEAMS = ("--set", "decoding.num_beams=3")
VARIETY = ("--set", "metrics.variety.type=diversity")


def begun(folder: Path, *changes: str) -> Path:
    (folder / "toy.toml").write_text(RECIPE)
    done = mmgen_here(folder, "run", "toy.toml", *changes)
    assert done.returncode == 0, done.stderr
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return begun(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def changed(tmp_path_factory) -> Path:
    """A run that had these settings from the beginning."""
    return begun(tmp_path_factory.mktemp("changed"), *BEAMS, *VARIETY)


@pytest.fixture
def run(plain, tmp_path) -> Path:
    """A folder with a copy of the finished run."""
    return Path(shutil.copytree(plain, tmp_path / "copy"))


def files(folder: Path, *names: str) -> dict[str, bytes]:
    """The files of the steps and the run with these names."""
    paths = [path for path in (folder / PLACE).rglob("*") if path.name in names]
    return {str(path.relative_to(folder / PLACE)): path.read_bytes() for path in paths}


RESULTS = ("weights.safetensors", "generations.jsonl", "scores.json", "recipe.json", "table.md")


def test_changed_decoding_and_metrics_keep_the_weights(run, changed):
    before = {path: path.stat().st_mtime_ns for path in run.rglob("weights.safetensors")}
    done = mmgen_here(run, "run", "toy.toml", *BEAMS, *VARIETY)
    assert "decoding has changed: texts (and probes, by `mmgen probe`) are made again, weights stay\n" in done.stdout, (
        done.stderr
    )
    assert "training" not in done.stdout + done.stderr
    assert {path: path.stat().st_mtime_ns for path in run.rglob("weights.safetensors")} == before
    assert files(run, *RESULTS) == files(changed, *RESULTS)
    again = mmgen_here(run, "run", "toy.toml", *BEAMS, *VARIETY)
    assert "nothing to do: all steps are done" in again.stdout and "changed" not in again.stdout


def test_changed_metrics_keep_the_texts(run):
    texts, written = files(run, "generations.jsonl"), PLACE / "steps/first/generations.jsonl"
    before = (run / written).stat().st_mtime_ns
    done = mmgen_here(run, "run", "toy.toml", *VARIETY)
    assert "metrics have changed: scores are computed again, weights stay\n" in done.stdout, done.stderr
    assert files(run, "generations.jsonl") == texts and (run / written).stat().st_mtime_ns == before
    for step in ("first", "second"):
        assert "distinct-1" in json.loads((run / PLACE / "steps" / step / "scores.json").read_text())["values"]


def test_a_change_of_what_is_trained_is_refused_beside_one_of_decoding(run):
    refused = mmgen_here(run, "run", "toy.toml", *BEAMS, "--set", "training.weight_decay=0.5")
    assert refused.returncode == 1 and "decoding" not in refused.stderr
    assert "  training.weight_decay: 0.01 -> 0.5\n" in refused.stderr
    assert json.loads((run / PLACE / "recipe.json").read_text())["decoding"]["num_beams"] == 1


class Killed(BaseException):
    """An exception that no code catches."""


def killed(run: Path, monkeypatch, moment: str) -> None:
    """Change the run, and exit just before a file of this name is written."""
    from mmgen import files as written

    write = written.write_atomically

    def die(path, *more):
        if path.name == moment:
            raise Killed
        return write(path, *more)

    with monkeypatch.context() as patch, pytest.raises(Killed):
        patch.setattr(written, "write_atomically", die)
        mmgen_here(run, "run", "toy.toml", *BEAMS, *VARIETY)


@pytest.mark.parametrize("moment", ["recipe.json", "generations.jsonl", "scores.json", "table.md"])
def test_killed_at_any_file_it_goes_on_to_the_right_result(run, changed, monkeypatch, moment):
    killed(run, monkeypatch, moment)
    left = json.loads((run / PLACE / "recipe.json").read_text())["decoding"]["num_beams"]
    assert left == (1 if moment == "recipe.json" else 3)
    texts = ("generations.jsonl", "scores.json")
    assert files(run, *texts).items() <= (files(changed, *texts).items() if left == 3 else set())
    assert mmgen_here(run, "run", "toy.toml", *BEAMS, *VARIETY).returncode == 0
    assert files(run, *RESULTS) == files(changed, *RESULTS)
