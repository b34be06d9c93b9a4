"""`mmgen probe`: the probes of a run, with other settings, and on the page of the report."""

from pathlib import Path

import pytest
import torch
from click.testing import CliRunner
from kit import toys

import mmgen
from mmgen.cli import main
from mmgen.registry import installed
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
    from mmgen.recipe.load import load

    folder = tmp_path_factory.mktemp("probes")
    (folder / "toy.toml").write_text(
        toys.recipe_with_pictures(folder / "runs", epochs=1, rate=1e-3, train=16, val=2, test=5) + PROBES
    )
    return run(load(folder / "toy.toml", installed())[0]).path


def probed(*arguments: str):
    return CliRunner().invoke(main, ["probe", *arguments])


def test_the_recipes_probes_run_and_say_where_everything_is(drawn, done):
    before = {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    result = probed(str(done))
    assert result.exit_code == 0, result.output
    assert "| both" in result.output and f"heads: all files are in {done}/probes/heads" in result.output
    assert "words: reads caption; grounding needs regions with boxes and a caption" in result.output
    assert sorted(path.name for path in (done / "probes/heads").iterdir()) == [
        "findings.json",
        "grounding.json",
        "grounding.png",
        "grounding.svg",
        "relations-both.png",
        "relations-both.svg",
        "tables.md",
    ]
    assert {"test-00000.svg", "test-00000.png", "attention.json"} <= {
        path.name for path in (done / "probes/looks").iterdir()
    }
    assert before == {path: path.read_bytes() for path in (done / "steps").rglob("*") if path.is_file()}
    assert not list((done / "probes").glob(".*"))


def test_untrained_models_have_the_shape_and_not_the_weights(done):
    from mmgen.runs.probe import untrained_model

    trained, fresh = mmgen.load(done, "both").model, untrained_model(mmgen.load(done, "both"), done / "backbone")
    assert {name: tensor.shape for name, tensor in trained.state_dict().items()} == {
        name: tensor.shape for name, tensor in fresh.state_dict().items()
    }
    assert not any(
        torch.equal(tensor, fresh.state_dict()[name])
        for name, tensor in trained.state_dict().items()
        if tensor.dim() == 2 and "mean" not in name
    )
    assert fresh.embedders["caption"]._backbone[0] is fresh.backbone and not fresh.training


def test_a_failing_probe_does_not_stop_the_others_and_keeps_old_results(done):
    assert probed(str(done), "--probe", "looks").exit_code == 0
    before = (done / "probes/looks/attention.json").read_bytes()
    result = probed(str(done), "--set", "looks.layer=7")
    assert (
        result.exit_code == 0
        and "looks: words: layer = 7: the encoder has the layers 1 to 2, or -1 for the last; both: layer = 7: "
        in result.output
    )
    assert (done / "probes/looks/attention.json").read_bytes() == before
    alone = probed(str(done), "--probe", "looks", "--set", "looks.layer=7")
    assert alone.exit_code == 1
