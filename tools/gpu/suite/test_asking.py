"""A run trains on the GPU, and later answers queries there."""

import json

from accelerate.state import AcceleratorState
from click.testing import CliRunner
from kit import toys

from mmgen.cli import main
from mmgen.inference.load import load_run


def test_a_run_is_made_and_asked_on_the_device(tmp_path, monkeypatch, device):
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    monkeypatch.chdir(tmp_path)
    AcceleratorState._reset_state(reset_partial_state=True)
    sets = ("data.train_size=8", "steps.first.evaluate=false")
    command = ["run", "toy.toml", "--step", "first", *(word for setting in sets for word in ("--set", setting))]
    done = CliRunner().invoke(main, command)
    assert done.exit_code == 0, done.output
    environment = json.loads((tmp_path / "runs/toy/default/seed-0/environment.json").read_text())
    assert (environment["device"] == "cpu") == (device.type == "cpu")
    run = load_run("runs/toy/default/seed-0", "first")
    assert run.model.device.type == device.type
