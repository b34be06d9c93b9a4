"""Use a bare checkout as if it were installed: its folders on the path, its entry points, and its commit."""

from __future__ import annotations

import os
import subprocess
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
READY = "MMGEN_GPU_READY"  # set where the environment is the one below


def environment(folder: Path, stand_in: bool = False) -> dict[str, str]:
    """The environment variables of a run's processes. Plugins are found through entry points, which are written into
    a folder before any installed mmgen. A stand-in sees no GPU, and has one thread."""
    paths = [ROOT, ROOT / "plugins", ROOT / "tests", write_entry_points(folder)]
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    variables = {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys([*map(str, paths), *filter(None, before)])),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONFAULTHANDLER": "1",  # a crash says where
        READY: "1",
    }
    if stand_in:
        variables |= {"CUDA_VISIBLE_DEVICES": "", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return {**os.environ, **variables}


def write_entry_points(folder: Path) -> Path:
    """Write the metadata that an installation would have, from pyproject.toml, into a folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    version = project.get("version", "0")
    info = folder.resolve() / f"{project['name'].replace('-', '_')}-{version}.dist-info"
    info.mkdir(parents=True, exist_ok=True)
    groups = "".join(
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items()) + "\n"
        for group, points in project.get("entry-points", {}).items()
    )
    (info / "entry_points.txt").write_text(groups, encoding="utf-8")
    metadata = f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {version}\n"
    (info / "METADATA").write_text(metadata, encoding="utf-8")
    return folder.resolve()


def commit(revision: str | None = None) -> str:
    """The commit of the checkout, with `+` if tracked files differ; without git, the given commit."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != ROOT:
            return revision or "unknown"  # the checkout lies inside of another one
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--untracked-files=no") else "")
    except (OSError, subprocess.CalledProcessError):
        return revision or "unknown"
