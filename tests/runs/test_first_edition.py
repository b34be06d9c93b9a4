"""A run of the first edition (0.1.0), kept as it was written: today's code loads it, writes its texts, and goes on."""

import json
import shutil
from pathlib import Path

import pytest
from kit import toys

from mmgen.inference.load import load_run
from mmgen.storage import generations

pytestmark = pytest.mark.slow  # every test starts commands or processes

KEPT = Path(__file__).resolve().parents[1] / "first_edition"
RUN = Path("runs/first/default/seed-0")


@pytest.fixture
def first(tmp_path, monkeypatch):
    """The run in a folder of its own, where it may be written to."""
    shutil.copytree(KEPT, tmp_path / "runs/first/default")
    shutil.move(tmp_path / "runs/first/default/first.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("step", ["words", "both"])
def test_loads_and_writes_the_same(first, step):
    run = load_run(RUN, step)
    written = run.generate(run.recipe.data.build().split("test"))
    kept = generations.read(RUN / "steps" / step)
    assert [texts[0].tokens for texts in written] == [texts[0].tokens for texts in kept]
    for (text, *_), (other, *_) in zip(written, kept, strict=True):
        assert text.score == pytest.approx(other.score, abs=1e-4)  # another machine rounds otherwise


def test_counts_as_done(first):
    before = {path: path.read_bytes() for path in RUN.glob("steps/*/*")}
    said = toys.mmgen_here(first, "run", "first.toml").stdout
    assert "nothing to do: all steps are done" in said
    assert {path: path.read_bytes() for path in RUN.glob("steps/*/*")} == before


def test_goes_on(first):
    """A step that is not there yet starts from weights of the first edition."""
    shutil.rmtree(RUN / "steps/both")
    toys.mmgen_here(first, "run", "first.toml")
    assert (RUN / "steps/both/weights.safetensors").exists()
    assert json.loads((RUN / "recipe.json").read_text())["name"] == "first"
