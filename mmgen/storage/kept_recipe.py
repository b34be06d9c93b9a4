"""What a run's recipe.json says besides the recipe: the folder that it was started in, where its paths count from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..registry import Registry

STARTED = "started_in"  # the key; a path from the run's folder


def started_in(folder: Path) -> str:
    """The current folder, as seen from a run's."""
    return os.path.relpath(os.path.realpath("."), os.path.realpath(folder))


def base(folder: Path, saved: dict[str, Any]) -> Path:
    """Where the paths of a recipe.json count from, which is not the recipe's key and is taken out."""
    started = saved.pop(STARTED, None)
    if not isinstance(started, str) or "\0" in started:
        return Path()
    place = os.path.normpath(Path(os.path.realpath(folder)) / started)
    return Path() if place == os.path.realpath(".") else Path(place)


def without_lost_probes(saved: dict[str, Any], registry: Registry) -> dict[str, Any]:
    """The tables without the probes whose plugin is gone."""
    if not isinstance(saved.get("probes"), dict):
        return saved
    there = {part.name for part in registry.of_kind("probe")}
    lost = [
        name
        for name, each in saved["probes"].items()
        if isinstance(each, dict) and isinstance(each.get("type"), str) and each["type"] not in there
    ]
    return {**saved, "probes": {name: each for name, each in saved["probes"].items() if name not in lost}}
