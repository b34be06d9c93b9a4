"""What a user types and sees: every text of this folder. `...` stands for what varies. Commands other than `mmgen` are
the shell's. `pytest tests/transcripts --write` replaces the outputs that have changed."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from kit import small_runs, toys

from mmgen import __version__ as VERSION

HERE = Path(__file__).parent


def world(folder: Path) -> None:
    """What commands find: the files of files/, and two finished runs with their recipes and features."""
    shutil.copytree(HERE / "files", folder, dirs_exist_ok=True)
    for name in ("writes", "predicts"):
        run = small_runs.drawn(name)
        shutil.copytree(run, folder / name)
        shutil.copytree(run.with_name("features"), folder / "features", dirs_exist_ok=True)
        shutil.copy(small_runs.recipe_of(name), folder)


def play(command: str, folder: Path) -> str:
    """The command, its standard output, its standard error, and its exit code unless that is 0."""
    if command.startswith("mmgen "):
        done = toys.mmgen_here(Path(), *shlex.split(command)[1:])
    else:
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True)
        if command.startswith("cd "):
            os.chdir(command.removeprefix("cd "))
    seen = f"{command}\n{done.stdout}{done.stderr}" + f"[{done.returncode}]\n" * bool(done.returncode)
    for text, name in {str(folder): "HERE", str(HERE.parents[1]): "MMGEN", VERSION: "VERSION"}.items():
        seen = seen.replace(text, name)
    return re.sub(r"(?m)^(\w[\w: ]*\w) +\d+/\d+ .*$", r"\1 ...", seen)  # lines of progress


@pytest.mark.slow
@pytest.mark.parametrize("path", HERE.glob("*.txt"), ids=lambda path: path.stem)
def test_transcript(path, tmp_path, monkeypatch, pytestconfig):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.chdir(tmp_path)
    world(tmp_path)
    head, *expected = re.split(r"(?m)^\$ ", path.read_text(encoding="utf-8"))
    seen = [play(block.partition("\n")[0], tmp_path) for block in expected]
    changed = [
        (was, now)
        for was, now in zip(expected, seen, strict=True)
        if not doctest.OutputChecker().check_output(was, now, doctest.ELLIPSIS)
    ]
    if pytestconfig.getoption("write"):
        blocks = [now if (was, now) in changed else was for was, now in zip(expected, seen, strict=True)]
        path.write_text("$ ".join([head, *blocks]), encoding="utf-8")
    else:
        assert not changed, "\nnow:\n".join(changed[0])
