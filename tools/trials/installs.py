"""The trial of installations: `pip install .` on every Python that is here, with the newest versions of everything and
with the oldest that pyproject.toml allows; then `mmgen --help` and a run. It needs an index of packages.

The oldest are those with a wheel for that Python; uv finds them, and is installed for it. The environment of a case is
deleted at its end, so that one of 6 GB is there at a time."""

from __future__ import annotations

import os
import resource
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kit import toys

from . import commands
from .piece import Case, Outcome

TRIES, COUNT = "installs", 6
KEEPS = False
ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.11", "3.12", "3.13")
VERSIONS = ("newest", "oldest")
CALLS = 12  # of `mmgen --help`, the fastest of which counts
MOST_OF_HELP = 300  # milliseconds of processor time
LIMIT = 3600.0  # seconds; a command that takes longer hangs
OLDEST = ("--resolution", "lowest-direct", "--only-binary", ":all:", "--quiet")


class Failed(Exception):
    """A command failed or took too long; the message says why."""


def cycle() -> list[str]:
    return [f"Python {python}, {versions}" for versions in VERSIONS for python in PYTHONS]


@contextmanager
def opened(seed: int, folder: Path) -> Iterator[Case]:
    """Cases take the Pythons in turn, first with the newest versions."""
    yield lambda number: install(PYTHONS[number % 3], VERSIONS[number // 3 % 2], folder / "case")


def install(python: str, versions: str, folder: Path) -> Outcome:
    """Install, measure, and train a toy."""
    folder.mkdir()
    sizes: dict[str, int] = {}
    wrong: tuple[str, ...] = ()
    try:
        environment = _installed(python, versions, folder)
        sizes = _sizes(environment)
        sizes["--help, ms"] = milliseconds = round(1000 * _seconds_of_help(environment))
        _trained(environment, folder)
        if milliseconds > MOST_OF_HELP:
            raise Failed(f"mmgen --help takes at least {milliseconds} ms of processor time, over {MOST_OF_HELP}")
    except Failed as failed:
        wrong = (str(failed),)
    finally:
        shutil.rmtree(folder)
    return Outcome(f"Python {python}, {versions}", 1, wrong, sizes=sizes)


def _installed(python: str, versions: str, folder: Path) -> Path:
    """A new virtual environment in which the last commit is installed, as a user does it."""
    environment, checkout, pins = folder / "environment", folder / "checkout", folder / "pins.txt"
    _run("git", "clone", "--quiet", ROOT, checkout)
    _run(f"python{python}", "-m", "venv", environment)
    pip = (environment / "bin/pip", "install", "--quiet")
    if versions == "oldest":
        finder = folder / "finder"
        _run(sys.executable, "-m", "venv", finder)
        _run(finder / "bin/pip", "install", "--quiet", "uv")
        compile_ = (finder / "bin/uv", "pip", "compile", *OLDEST, "--python-version", python)
        _run(*compile_, checkout / "pyproject.toml", "--output-file", pins)
        pip = (*pip, "--constraint", pins)
    _run(*pip, checkout)
    return environment


def _sizes(environment: Path) -> dict[str, int]:
    sizes = {path: path.lstat().st_size for path in environment.rglob("*") if path.is_file()}
    nvidia = sum(size for path, size in sizes.items() if "nvidia" in path.parts)
    return {"MB": round(sum(sizes.values()) / 1e6), "of NVIDIA, MB": round(nvidia / 1e6)}


def _seconds_of_help(environment: Path) -> float:
    """Seconds of processor time."""
    seconds = []
    for _ in range(CALLS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        _run(environment / "bin/mmgen", "--help")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime)
    return min(seconds)


def _trained(environment: Path, folder: Path) -> None:
    (folder / "toy.toml").write_text(toys.recipe())
    printed = _run(environment / "bin/mmgen", "run", "toy.toml", folder=folder)
    if missing := [step for step in tomllib.loads(toys.recipe())["steps"] if step not in printed]:
        raise Failed(f"the table lacks {missing}: {printed[-300:]}")


def _run(*command: str | Path, folder: Path = ROOT) -> str:
    """Run a command; what it prints on stdout."""
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    try:
        done = commands.run(command, folder, LIMIT, variables)
    except subprocess.TimeoutExpired:
        raise Failed(f"{' '.join(map(str, command))} hangs for over {LIMIT:g} seconds") from None
    if done.returncode:
        raise Failed(f"{' '.join(map(str, command))} ends with {done.returncode}: {done.stderr[-500:].strip()}")
    return done.stdout
