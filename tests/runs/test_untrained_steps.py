"""A step that trains nothing: it writes with the weights of another step, and is a row of the table like any other."""

import json
import shutil
from pathlib import Path

import pytest
from kit import toys
from kit.toys import PLACE, mmgen_here

pytestmark = pytest.mark.slow

BEAMS = ("--set", "decoding.num_beams=3")
STEP = """
[steps.beams]
start = "second"
train = []
decoding = { num_beams = 3 }
"""
RECIPE = toys.recipe(data={"train_size": 16, "test_size": 4})


def ran(folder: Path, *more: str) -> str:
    done = mmgen_here(folder, "run", "toy.toml", *more)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def plain(tmp_path_factory) -> Path:
    """A folder with a finished run, to whose recipe the step is added later."""
    folder = tmp_path_factory.mktemp("plain")
    (folder / "toy.toml").write_text(RECIPE)
    ran(folder)
    (folder / "toy.toml").write_text(RECIPE + STEP)
    return folder


@pytest.fixture(scope="module")
def written(plain, tmp_path_factory) -> Path:
    folder = Path(shutil.copytree(plain, tmp_path_factory.mktemp("written") / "copy"))
    (folder / "said.txt").write_text(ran(folder))
    return folder


@pytest.fixture
def run(plain, tmp_path) -> Path:
    return Path(shutil.copytree(plain, tmp_path / "copy"))


def results(folder: Path, step: str) -> list[bytes]:
    return [(folder / PLACE / "steps" / step / name).read_bytes() for name in ("generations.jsonl", "scores.json")]


def test_it_writes_what_the_step_writes_with_that_decoding(written, plain, tmp_path):
    decoded = Path(shutil.copytree(plain, tmp_path / "decoded"))
    (decoded / "toy.toml").write_text(RECIPE)
    ran(decoded, *BEAMS)
    assert results(written, "beams") == results(decoded, "second")
    assert results(written, "second") == results(plain, "second")
    names = {path.name for path in (written / PLACE / "steps/beams").iterdir()}
    assert names == {"generations.jsonl", "scores.json"}
    step = json.loads((written / PLACE / "recipe.json").read_text())["steps"]["beams"]
    assert (step["inputs"], step["train"], step["decoding"]["num_beams"]) == (["caption"], [], 3)


def test_interrupted_it_goes_on(run, written, monkeypatch):
    from mmgen import files

    class Killed(BaseException):
        pass

    write, moments = files.write_atomically, []

    def die(path, *more):
        if path.parent.name == "beams" and path.name not in moments:
            moments.append(path.name)
            raise Killed
        return write(path, *more)

    monkeypatch.setattr(files, "write_atomically", die)
    for _ in range(2):
        with pytest.raises(Killed):
            mmgen_here(run, "run", "toy.toml")
    ran(run)
    assert moments == ["generations.jsonl", "scores.json"] and results(run, "beams") == results(written, "beams")


def test_its_changed_decoding_writes_its_texts_again_and_no_others(written, tmp_path):
    run = Path(shutil.copytree(written, tmp_path / "copy"))
    said = ran(run, "--set", "steps.beams.decoding.num_beams=2")
    assert "decoding has changed: texts (and probes, by `mmgen probe`) are made again, weights stay" in said
    lines = [line for line in said.splitlines() if ": writing " in line or ": scoring " in line]
    assert [line.split(":")[0] for line in lines] in ([], ["beams", "beams"])  # without a terminal there may be no bars
    assert results(run, "second") == results(written, "second") and results(run, "beams") != results(written, "beams")
    refused = mmgen_here(run, "run", "toy.toml", "--set", "training.weight_decay=0.5")
    assert refused.returncode == 1 and "training.weight_decay: 0.01 -> 0.5" in refused.stderr
