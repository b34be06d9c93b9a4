"""Runs whose [decoding], [metrics] or steps have changed: weights stay, texts and scores are those of a fresh run. What
such runs say is in tests/transcripts/runs.txt."""

import shutil
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]

RECIPE = toys.recipe(data={"train_size": 16, "test_size": 4})
BEAMS = ("--set", "decoding.num_beams=3")
VARIETY = ("--set", "metrics.variety.type=diversity")
UNTRAINED = ("--set", 'steps.beams={start="second", train=[], decoding={num_beams=3}}')
RESULTS = ("weights.safetensors", "generations.jsonl", "scores.json", "recipe.json", "table.md")


def ran(folder: Path, *changes: str) -> Path:
    (folder / "toy.toml").write_text(RECIPE)
    toys.ran(folder, *changes)
    return folder


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    return ran(tmp_path_factory.mktemp("plain"))


@pytest.fixture(scope="module")
def fresh(tmp_path_factory) -> Path:
    """A run that had these settings from the beginning."""
    return ran(tmp_path_factory.mktemp("fresh"), *BEAMS, *VARIETY)


@pytest.fixture
def run(plain, tmp_path) -> Path:
    """A folder with a copy of the finished run."""
    return Path(shutil.copytree(plain, tmp_path / "copy"))


def files(folder: Path, *names: str) -> dict[str, bytes]:
    """The files of the steps and the run with these names."""
    paths = [path for path in (folder / PLACE).rglob("*") if path.name in names]
    return {str(path.relative_to(folder / PLACE)): path.read_bytes() for path in paths}


def written_at(folder: Path, name: str) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob(name)}


def test_changed_decoding_and_metrics_keep_the_weights(run, fresh):
    before = written_at(run, "weights.safetensors")
    ran(run, *BEAMS, *VARIETY)
    assert written_at(run, "weights.safetensors") == before and files(run, *RESULTS) == files(fresh, *RESULTS)


def test_a_step_that_trains_nothing_writes_what_the_step_writes_with_that_decoding(run, fresh, monkeypatch):
    """Also if it is stopped before each of its files."""
    from mmgen import files as written

    class Killed(BaseException):
        pass

    write, moments = written.write_atomically, []

    def die(path, *more):
        if path.parent.name == "beams" and path.name not in moments:
            moments.append(path.name)
            raise Killed
        return write(path, *more)

    monkeypatch.setattr(written, "write_atomically", die)
    for _ in range(2):
        with pytest.raises(Killed):
            ran(run, *VARIETY, *UNTRAINED)
    ran(run, *VARIETY, *UNTRAINED)
    assert moments == ["generations.jsonl", "scores.json"]
    steps = {path.parent.name: path.parent for path in run.rglob("generations.jsonl")}
    assert {path.name for path in steps["beams"].iterdir()} == {"generations.jsonl", "scores.json"}
    for name in ("generations.jsonl", "scores.json"):
        assert (steps["beams"] / name).read_bytes() == (fresh / PLACE / "steps/second" / name).read_bytes()
    before = written_at(run, "generations.jsonl")
    ran(run, *VARIETY, *UNTRAINED, "--set", "steps.beams.decoding.num_beams=2")
    changed = [
        path.parent.name for path, moment in written_at(run, "generations.jsonl").items() if before[path] != moment
    ]
    assert changed == ["beams"]
