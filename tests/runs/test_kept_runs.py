"""Two finished runs of commit 3fc204f, in the files of that commit: today's code loads them, writes and predicts the
same, considers them finished, and continues them."""

import shutil
from pathlib import Path

import pytest
import torch
from kit import toys

from mmgen.inference.load import load_run
from mmgen.storage import generations, predictions

pytestmark = pytest.mark.slow  # every test loads encoders, most run commands

STORED = Path(__file__).resolve().parents[1] / "kept_runs"


def scored_on(recipe, step):
    """The examples that a step is scored on."""
    data = recipe.steps[step].data or recipe.data
    dataset = (data[0] if isinstance(data, tuple) else data).build()
    return dataset.split("test")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Both runs in a writable folder, the current one."""
    for name in ("writes", "predicts"):
        shutil.copytree(STORED / name, tmp_path / "runs" / name / "default")
        shutil.move(tmp_path / "runs" / name / "default" / f"{name}.toml", tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def folder(name: str) -> Path:
    return Path("runs") / name / "default" / "seed-0"


@pytest.mark.parametrize("step", ["words", "both"])
def test_writes_the_same_texts(runs, step):
    run = load_run(folder("writes"), step)
    stored = generations.read(folder("writes") / "steps" / step)
    for (text, *_), (stored_text, *_) in zip(run.generate(scored_on(run.recipe, step)), stored, strict=True):
        assert text.tokens == stored_text.tokens
        assert text.score == pytest.approx(stored_text.score, abs=1e-4)  # another machine rounds differently


@pytest.mark.parametrize("step", ["answers", "choices", "expressions"])
def test_predicts_the_same(runs, step):
    run = load_run(folder("predicts"), step)
    predictions_now = run.predict(scored_on(run.recipe, step))
    stored = predictions.read(folder("predicts") / "steps" / step)
    assert [prediction.id for prediction in predictions_now] == [prediction.id for prediction in stored]
    for now, before in zip(predictions_now, stored, strict=True):
        assert now.score == pytest.approx(before.score, abs=1e-4)
        assert flat(now.value) == pytest.approx(flat(before.value), abs=1e-4)


def flat(value) -> dict[str, float]:
    """The numbers in a prediction's value, in order."""
    if isinstance(value, dict):
        return {f"{key}.{place}": number for key, inner in value.items() for place, number in flat(inner).items()}
    if isinstance(value, list | tuple):
        return flat(dict(enumerate(value)))
    return {"": float(value)} if isinstance(value, int | float) else {str(value): 0.0}


@pytest.mark.parametrize("name", ["writes", "predicts"])
def test_is_done(runs, name):
    before = {path: path.read_bytes() for path in folder(name).glob("steps/*/*")}
    printed = toys.mmgen_here(Path.cwd(), "run", f"{name}.toml").stdout
    assert "nothing to do: all steps are done" in printed
    assert {path: path.read_bytes() for path in folder(name).glob("steps/*/*")} == before


def drops_as_stored() -> bool:
    """Whether the installed torch draws the dropout of the torch that the runs are of, 2.15; 2.6 draws another."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return torch.nn.functional.dropout(torch.ones(12)).tolist() == [0, 0, 2, 0, 0, 0, 2, 2, 0, 2, 2, 2]


@pytest.mark.parametrize(("name", "step"), [("writes", "both"), ("predicts", "choices")])
def test_continues(runs, name, step):
    """A missing step starts from the stored weights of another step, and ends with its former weights."""
    if not drops_as_stored():
        pytest.skip("the installed torch draws other dropout than the torch of the stored runs")
    weights = folder(name) / "steps" / step / "weights.safetensors"
    before = toys.load_file(weights)
    shutil.rmtree(weights.parent)
    printed = toys.mmgen_here(Path.cwd(), "run", f"{name}.toml")
    assert printed.returncode == 0, printed.stderr
    after = toys.load_file(weights)
    assert after.keys() == before.keys()
    for key, tensor in after.items():
        if not key.endswith("key.bias"):  # its gradient is rounding alone, which differs between kinds of CPU
            assert tensor.numpy() == pytest.approx(before[key].numpy(), abs=1e-5), key


def test_a_report_is_drawn(runs):
    for name in ("writes", "predicts"):
        drawn = toys.mmgen_here(Path.cwd(), "report", str(folder(name)))
        assert drawn.returncode == 0, drawn.stderr
        assert (folder(name) / "report.html").stat().st_size > 50_000
