"""The recipe.json of a run: the folder that its paths are relative to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from ..errors import RunError

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
    if not isinstance(started, str) or "\0" in started:  # of an export
        return Path()
    place = os.path.normpath(Path(os.path.realpath(folder)) / started)
    return Path() if place == os.path.realpath(".") else Path(place)
