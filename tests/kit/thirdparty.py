"""Third-party packages in a separate environment, a child of the current one, so that nothing is installed here.

Code that needs torch runs in a process that has imported it (see `forked`), with the environment's packages on its
path."""

import subprocess
import sysconfig
import tempfile
import textwrap
import venv
import zipfile
from pathlib import Path
from types import ModuleType

from kit import COSTLY, forked
from mmgen.registry import Source

SEVERAL = """
import contextlib
import mmgen.report
from mmgen.cli import main
mmgen.report.try_page = lambda *_: None  # a third of a small run, and nobody looks at it
for folder, arguments in {calls!r}:
    with contextlib.chdir(folder):
        main.main(arguments, standalone_mode=False)
"""
PYTEST = """
import runpy, sys
sys.argv[:] = ["pytest", "-q", "-p", "no:cacheprovider", *sys.argv[1:]]
runpy.run_module("pytest", run_name="__main__", alter_sys=True)
"""
BUILD = "import sys, setuptools.build_meta as backend; getattr(backend, sys.argv[1])(sys.argv[2])"


def settings(*sets: str) -> list[str]:
    """Every setting with `--set` before it."""
    return [word for setting in sets for word in ("--set", setting)]


class Environment:
    """A virtual environment that sees its own packages and everything installed here."""

    def __init__(self, folder: Path) -> None:
        venv.create(folder)
        bases = {"base": str(folder), "platbase": str(folder)}
        self.python = folder / "bin/python"
        self.packages = Path(sysconfig.get_path("purelib", "venv", bases))
        here = sysconfig.get_path("purelib")
        (self.packages / "parent.pth").write_text(f"import site; site.addsitedir({here!r})\n")

    def install(self, *folders: Path, editable: bool = False) -> None:
        """Does what `pip install FOLDER` does offline: the packages' backend builds wheels, which are unpacked."""
        for folder in folders:
            with tempfile.TemporaryDirectory() as wheels:
                done = forked.run(BUILD, "build_editable" if editable else "build_wheel", wheels, folder=folder)
                assert done.returncode == 0, done.stdout + done.stderr
                (wheel,) = Path(wheels).glob("*.whl")
                zipfile.ZipFile(wheel).extractall(self.packages)

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
        return subprocess.run([self.python, *arguments], cwd=cwd, capture_output=True, text=True)

    def mmgen(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
        return self.run("-m", "mmgen", *arguments, cwd=cwd)

    def several(self, calls: list[tuple[str, list[str]]], more: str = "") -> subprocess.CompletedProcess:
        """Calls of mmgen in their folders, in one process; then some code."""
        return self.forked(SEVERAL.format(calls=calls) + more, cwd=Path(calls[0][0]))

    def pytest(self, *folders: Path, cwd: Path, costly: bool = False) -> subprocess.CompletedProcess:
        chosen = () if costly else ("-k", " and ".join(f"not {name}" for name in COSTLY))
        return self.forked(PYTEST, *chosen, *map(str, folders), cwd=cwd)

    def forked(self, script: str, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
        here = f"import site, sys; site.addsitedir({str(self.packages)!r}); sys.executable = {str(self.python)!r}\n"
        return forked.run(here + script, *arguments, folder=cwd)


AUDIO = """
    from typing import Literal
    import mmgen
    class Audio(mmgen.EmbedderConfig):
        "Sounds."
        type: Literal["audio"] = "audio"
        def build(self, backbone): ...
    @mmgen.hookimpl
    def register_embedders():
        return [Audio]
"""


def plugin(code: str, name: str = "audio", distribution: str = "mmgen-audio", version: str = "0.3"):
    """A plugin as the registry gets it: its source, and a module with this code."""
    module = ModuleType(f"mmgen_{name}")
    exec(textwrap.dedent(code), vars(module))
    return Source(name, distribution, version), module
