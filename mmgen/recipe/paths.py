"""Paths in a recipe: which keys are paths, and where they count from. A path counts from the folder of the file that it
is written in; one of --set counts from the current folder, as everything else on the command line does."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..configs import Config, PathOrName, RelativeTo, classes_in

Some = TypeVar("Some", bound=Config)
WEIGHT_FILES = (".safetensors", ".bin", ".pt", ".pth", ".th", ".model")  # ends of no names; the first is no pickle


def path_keys(cls: type[Config]) -> dict[str, PathOrName | None]:
    """Keys of a config that are paths, with the mark of those that may be names too."""
    found = {}
    for name, info in cls.model_fields.items():
        marks = info.metadata
        either = next((mark for mark in marks if isinstance(mark, PathOrName)), None)
        if either or (Path in classes_in(info.annotation) and not any(isinstance(mark, RelativeTo) for mark in marks)):
            found[name] = either
    return found


def counted(cls: type[Config], table: Mapping[str, Any], folder: Callable[[str], Path]) -> dict[str, Any]:
    """A table of a recipe, its paths counted from where `folder` says of a key that it was written."""
    made = dict(table)
    for name, either in path_keys(cls).items():
        if name in made:
            made[name] = _each(made[name], either, partial(from_folder, folder=folder(name), either=bool(either)))
    return made


def from_folder(text: str, folder: Path, either: bool = False) -> str:
    """A path that counts from `folder`. `either`: it is a name where no such file is there, unless it ends like one."""
    if not text or folder == Path() or Path(text).is_absolute():
        return text
    joined = folder / text
    if either and not text.startswith(".") and not _there(joined) and not text.endswith(WEIGHT_FILES):
        return text
    plain = os.path.normpath(joined)
    return plain if _real(plain) == _real(joined) else str(joined)  # behind a link, `..` is elsewhere


def located(config: Some) -> Some:
    """The config with every path as it is found on this machine, so that two ways to write one are equal."""
    keys = path_keys(type(config))
    change: dict[str, Any] = {}
    for name, value in config:
        if name in keys:
            change[name] = _each(value, keys[name], partial(_found, either=bool(keys[name])))
        elif isinstance(value, Config):
            change[name] = located(value)
        elif isinstance(value, dict):
            change[name] = {key: located(each) if isinstance(each, Config) else each for key, each in value.items()}
        elif isinstance(value, tuple):
            change[name] = tuple(located(each) if isinstance(each, Config) else each for each in value)
    return config.model_copy(update=change)


def _found(path: Any, either: bool) -> Any:
    name = either and not _there(Path(path)) and not str(path).endswith(WEIGHT_FILES)
    return path if name else type(path)(_real(path))


def _real(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a NUL, or links in a circle: whoever opens it says what is wrong
        return str(path)


def _there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _each(value: Any, mark: PathOrName | None, change: Callable[[Any], Any]) -> Any:
    """A path, or what holds several; what its mark says stands in front of it stays."""
    if isinstance(value, str) and mark and mark.behind:
        path = value.removeprefix(mark.behind)
        return value if path == value else mark.behind + change(path)
    if isinstance(value, str | Path):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_each(one, mark, change) for one in value)
    if isinstance(value, dict):
        return {key: _each(one, mark, change) for key, one in value.items()}
    return value
