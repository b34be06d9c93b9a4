"""`mmgen data check`."""

from kit import toys


def test_data_are_shown(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    done = toys.mmgen_here(tmp_path, "data", "check", "toy.toml")
    assert done.returncode == 0, done.stderr
    assert "train-00001\n" in done.stdout and "  -> " in done.stdout
