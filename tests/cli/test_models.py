"""`mmgen export`, `mmgen push` and `mmgen info`."""

import subprocess
import sys

import pytest
from kit import small_runs, toys


def test_folders_without_a_model(tmp_path):
    for arguments in (("export", "nowhere", "out"), ("info", "nowhere")):
        done = toys.mmgen_here(tmp_path, *arguments)
        assert (done.returncode, done.stderr) == (
            1,
            "error: nowhere: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)\n",
        )
    pushed = toys.mmgen_here(tmp_path, "push", "nowhere", "hf:me/toy")
    assert (pushed.returncode, pushed.stderr) == (
        1,
        "error: nowhere: not an export; write one with `mmgen export RUN FOLDER`\n",
    )


@pytest.mark.slow
def test_a_folder_that_does_not_exist_is_refused_before_torch_starts(tmp_path):
    commands = [
        ["info", "nowhere"],
        ["export", "nowhere", "out"],
        ["push", "nowhere", "hf:me/toy"],
        ["serve", "nowhere"],
    ]
    script = f"""
import sys
from click.testing import CliRunner
from mmgen.cli import main
print(*[CliRunner().invoke(main, command).exit_code for command in {commands}], "torch" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout == "1 1 1 1 False\n", done.stderr


def test_a_run_is_described(tmp_path):
    folder = small_runs.drawn("writes")
    done = toys.mmgen_here(tmp_path, "info", str(folder))
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[0] == f"{folder}: a run of 'writes', profile default, seed 0"
    assert "| both  | image and caption | text  | finished |" in done.stdout
