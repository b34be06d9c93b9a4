"""The package of a part, for the suites: its entry point, its registered parts, its imports."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

from ..configs import PartConfig
from ..errors import PluginError
from ..hookspecs import GROUP
from ..registry import KINDS, installed


def entry_point(config: type[PartConfig]) -> importlib.metadata.EntryPoint | None:
    """The entry point that names the package of a config class, or a module of it."""
    package = config.__module__.partition(".")[0]
    entries = importlib.metadata.entry_points(group=GROUP)
    return next((entry for entry in entries if entry.module.partition(".")[0] == package), None)


def distribution(config: type[PartConfig]) -> str | None:
    """The installed distribution of a config class; None for a class of a test."""
    return next(iter(_distributions().get(config.__module__.partition(".")[0], ())), None)


def registration_problem(config: type[PartConfig], entry: importlib.metadata.EntryPoint) -> str:
    """Why a recipe cannot name this part although its package has an entry point; empty if it can."""
    assert entry.dist is not None  # only entry points created by hand have none
    registry = installed()
    for broken in registry.broken:
        if (broken.source.plugin, broken.source.distribution) == (entry.name, entry.dist.name):
            return str(broken)
    registered = next((part for part in registry.parts if part.config is config), None)
    if registered is None:
        return (
            f"the entry point '{entry.name}' ({entry.value}) does not give {config.__name__}; return it from "
            f"{KINDS[config.kind][0]}()"
        )
    try:
        registry.get(config.kind, registered.name)
    except PluginError as error:
        return str(error)
    return ""


@lru_cache
def import_problem(module: str) -> str:
    """What is wrong with the import of a plugin's module in a new process; empty if nothing is."""
    torch, error = imports_torch(module, "")
    if torch:
        return f"importing {module} imports torch, which slows down every command; import torch inside build"
    return f"{module} cannot be imported: {error}" if error else ""


def imports_torch(module: str, code: str) -> tuple[bool, str]:
    """Whether importing a module as `module` and running `code` imports torch, in a new process; and the last line of
    the error, if any."""
    roots = [_folder_of(module), _folder_of("mmgen"), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, roots))}
    lines = ["import importlib, sys", f"module = importlib.import_module({module!r})", code]
    lines.append("sys.exit(3 if 'torch' in sys.modules else 0)")
    result = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, env=environment)
    failed = result.returncode not in (0, 3)
    return result.returncode == 3, result.stderr.strip().rpartition("\n")[2] if failed else ""


def _folder_of(module: str) -> str:
    """The folder that a top-level module or package is imported from; empty if there is none."""
    spec = importlib.util.find_spec(module.partition(".")[0])
    if spec is None or spec.origin is None:
        return ""
    return str(Path(spec.origin).parent.parent if spec.submodule_search_locations else Path(spec.origin).parent)


@lru_cache
def _distributions() -> dict[str, list[str]]:
    """Top-level package -> its distributions."""
    return dict(importlib.metadata.packages_distributions())
