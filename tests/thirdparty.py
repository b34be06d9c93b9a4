"""Packages of third parties in an environment of their own: a child of this one, so that nothing is installed here."""

import os
import subprocess
import sys
import sysconfig
import textwrap
from pathlib import Path
from types import ModuleType

from mmgen.registry import Source

SEVERAL = """
import contextlib
from mmgen.cli import main
for folder, arguments in {calls!r}:
    with contextlib.chdir(folder):
        main.main(arguments, standalone_mode=False)
"""


def settings(*sets: str) -> list[str]:
    """`--set` before each."""
    return [word for one in sets for word in ("--set", one)]


class Environment:
    """A virtual environment that sees everything installed here, and its own besides."""

    def __init__(self, folder: Path) -> None:
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        self.python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
        own = subprocess.run(
            [self.python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])"],
            capture_output=True,
            text=True,
            check=True,
        )
        here = sysconfig.get_paths()["purelib"]
        (Path(own.stdout.strip()) / "parent.pth").write_text(f"import site; site.addsitedir({here!r})\n")

    def install(self, *folders: Path, editable: bool = False) -> None:
        """What `pip install FOLDER` does, with nothing fetched."""
        wanted = [word for folder in folders for word in ([*(["-e"] if editable else []), str(folder.resolve())])]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "--python",
            str(self.python),
            "install",
            "-q",
            "--no-deps",
            "--no-build-isolation",
            "--no-index",
        ]
        done = subprocess.run([*pip, *wanted], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr

    def run(self, *arguments: str, cwd: Path, **more: str) -> subprocess.CompletedProcess:
        return subprocess.run(
            [self.python, *arguments], cwd=cwd, capture_output=True, text=True, env={**os.environ, **more}
        )

    def mmgen(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess:
        return self.run("-m", "mmgen", *arguments, cwd=cwd)

    def several(self, calls: list[tuple[str, list[str]]], more: str = "") -> subprocess.CompletedProcess:
        """Calls of mmgen in their folders, in one process, so that torch starts once; then some code."""
        return self.run("-c", SEVERAL.format(calls=calls) + more, cwd=Path(calls[0][0]))


def plugin(code: str, name: str = "audio", distribution: str = "mmgen-audio", version: str = "0.3"):
    """A plugin as the registry is handed it: its source, and a module with this code."""
    module = ModuleType(f"mmgen_{name}")
    exec(textwrap.dedent(code), vars(module))
    return Source(name, distribution, version), module
