"""`mmgen probe`: the probes of a run, with other settings, and on the page of the report."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from kit import toys

import mmgen
from mmgen.cli import main
from mmgen.runs.probe import untrained_model
from mmgen.runs.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


PROBES = """\
[probes.heads]
type = "grounding"
[probes.looks]
type = "attention"
examples = 1
"""


@pytest.fixture(scope="module")
def done(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("probes")
    recipe = toys.recipe_with_pictures(folder / "runs", epochs=1, rate=1e-3, train=16, val=2, test=5)
    return run(toys.loaded(folder, recipe + PROBES)).path


def probed(*arguments: str):
    return CliRunner().invoke(main, ["probe", *arguments])


def test_the_recipes_probes_run_and_say_where_everything_is(drawn, done):
    before = {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    result = probed(str(done))
    assert result.exit_code == 0, result.output
    assert "| both" in result.output and f"heads: all files are in {done}/probes/heads" in result.output
    assert "words: reads caption; grounding needs regions with boxes and a caption" in result.output
    files = {str(path.relative_to(done / "probes")) for path in (done / "probes").rglob("*.*")}
    assert {f"heads/{name}" for name in ("findings.json", "tables.md", "grounding.png", "relations-both.svg")} <= files
    assert {"looks/test-00000.svg", "looks/test-00000.png", "looks/attention.json"} <= files
    assert before == {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}


def test_untrained_models_have_the_shape_and_not_the_weights(done):
    untrained = untrained_model(mmgen.load(done, "both"), done / "backbone")
    trained, fresh = mmgen.load(done, "both").model.state_dict(), untrained.state_dict()
    assert {name: tensor.shape for name, tensor in trained.items()} == {n: tensor.shape for n, tensor in fresh.items()}
    matrices = [name for name, tensor in trained.items() if tensor.dim() == 2 and "mean" not in name]
    assert not any(torch.equal(trained[name], fresh[name]) for name in matrices)
    assert untrained.embedders["caption"]._backbone[0] is untrained.backbone and not untrained.training


def test_a_failing_probe_does_not_stop_the_others_and_keeps_old_results(done):
    assert probed(str(done), "--probe", "looks").exit_code == 0
    before = (done / "probes/looks/attention.json").read_bytes()
    result = probed(str(done), "--set", "looks.layer=7")
    problem = "looks: words: layer = 7: the encoder has the layers 1 to 2, or -1 for the last; both: layer = 7: "
    assert result.exit_code == 0 and problem in result.output
    assert (done / "probes/looks/attention.json").read_bytes() == before
    assert probed(str(done), "--probe", "looks", "--set", "looks.layer=7").exit_code == 1
