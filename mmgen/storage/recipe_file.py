"""The recipe.json of a run: the folder that its paths are relative to; probes whose plugin is missing are left out."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import RunError
from ..registry import Registry

STARTED = "started_in"  # the key; a path from the run's folder


def missing(folder: Path) -> RunError:
    """The error for a folder without a recipe.json."""
    return RunError(f"{folder}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)")


def started_in(folder: Path) -> str:
    """The current folder, as a path relative to a run's folder."""
    return os.path.relpath(os.path.realpath("."), os.path.realpath(folder))


def base(folder: Path, saved: dict[str, Any]) -> Path:
    """The base folder of the paths in a recipe.json; its key, which is not of the recipe, is removed from `saved`."""
    started = saved.pop(STARTED, None)
    if not isinstance(started, str) or "\0" in started:
        return Path()
    place = os.path.normpath(Path(os.path.realpath(folder)) / started)
    return Path() if place == os.path.realpath(".") else Path(place)


def without_lost_probes(saved: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """The tables without the probes whose plugin is not installed."""
    if not isinstance(saved.get("probes"), dict):
        return saved
    installed = registry.by_name("probe")
    lost = [
        name
        for name, table in saved["probes"].items()
        if isinstance(table, dict) and isinstance(table.get("type"), str) and table["type"] not in installed
    ]
    return {**saved, "probes": {name: table for name, table in saved["probes"].items() if name not in lost}}
