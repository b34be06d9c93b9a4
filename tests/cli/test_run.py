"""`mmgen run`: options that are refused before anything is trained."""

import pytest
from kit import toys


@pytest.mark.parametrize("steps", [("--step", "capton"), ("--step", "capton", "--step", "first")])
def test_an_unknown_step(tmp_path, steps):
    (tmp_path / "toy.toml").write_text(toys.recipe())
    done = toys.mmgen_here(tmp_path, "run", "toy.toml", *steps)
    assert done.returncode == 1 and "capton" in done.stderr and not (tmp_path / "runs").exists()


def test_track_is_a_shorthand_of_a_callback(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe())
    done = toys.mmgen_here(tmp_path, "run", "toy.toml", "--track", "tensorbord")
    assert done.returncode == 1 and not (tmp_path / "runs").exists()
    assert done.stderr.startswith("error: --set callbacks.tensorbord.type="), done.stderr
    assert "did you mean 'tensorboard'?" in done.stderr
