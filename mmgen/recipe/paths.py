"""Paths in a recipe: which keys are paths, what they are relative to, and their real paths on this machine.

A path is relative to the folder of the file that contains it; a path of --set is relative to the current folder, as
all paths on the command line are."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from ..configs import Config, PathOrName, RelativeTo, classes_in

Some = TypeVar("Some", bound=Config)
WEIGHT_FILES = (
    ".safetensors",
    ".bin",
    ".pt",
    ".pth",
    ".th",
    ".model",
)  # names of the hub do not end so; only the first is not a pickle


def path_keys(cls: type[Config]) -> dict[str, PathOrName | None]:
    """Keys of a config that are paths, with the mark of those that may also be names."""
    marks_by_key = {}
    for name, info in cls.model_fields.items():
        marks = info.metadata
        either = next((mark for mark in marks if isinstance(mark, PathOrName)), None)
        if either or (Path in classes_in(info.annotation) and not any(isinstance(mark, RelativeTo) for mark in marks)):
            marks_by_key[name] = either
    return marks_by_key


def resolve_paths(cls: type[Config], table: Mapping[str, Any], folder: Callable[[str], Path]) -> dict[str, Any]:
    """A table of a recipe with its paths resolved against `folder(key)`, the folder of the file that has the key."""
    resolved = dict(table)
    for name, either in path_keys(cls).items():
        if name in resolved:
            resolved[name] = _map_paths(
                resolved[name], either, partial(from_folder, folder=folder(name), either=bool(either))
            )
    return resolved


def from_folder(text: str, folder: Path, either: bool = False) -> str:
    """A path relative to `folder`, resolved. `either`: a text without such a file, and without the ending of one, is a
    name."""
    if not text or folder == Path() or Path(text).is_absolute():
        return text
    joined = folder / text
    if either and not text.startswith(".") and not _exists(joined) and not text.endswith(WEIGHT_FILES):
        return text
    plain = os.path.normpath(joined)
    if either and text.startswith(".") and not _exists(joined) and not Path(plain).is_absolute():
        plain = f"./{plain}"  # still a path, not a name of the hub
    return plain if _real_path(plain) == _real_path(joined) else str(joined)  # after a link, `..` is another folder


def with_real_paths(config: Some) -> Some:
    """The config with every path as its real path on this machine, so that two spellings of a path are equal."""
    return _with_paths(config, _real_path_or_name)


def without_local_paths(config: Some) -> Some:
    """The config with "local" in place of every path: what leaves this machine must not contain any."""

    def hide(path: Any, either: bool) -> Any:
        place = Path(path)
        name = either and not place.is_absolute() and not _exists(place) and place.suffix not in WEIGHT_FILES
        return path if name else type(path)("local")

    return _with_paths(config, hide)


def _with_paths(config: Some, change: Callable[..., Any]) -> Some:
    """The config with `change(path, either=...)` in place of every path; `either`: whether it may also be a name."""
    keys = path_keys(type(config))
    changed: dict[str, Any] = {}
    for name, value in config:
        if name in keys:
            changed[name] = _map_paths(value, keys[name], partial(change, either=bool(keys[name])))
        elif isinstance(value, Config):
            changed[name] = _with_paths(value, change)
        elif isinstance(value, dict):
            changed[name] = {
                key: _with_paths(entry, change) if isinstance(entry, Config) else entry for key, entry in value.items()
            }
        elif isinstance(value, tuple):
            changed[name] = tuple(_with_paths(entry, change) if isinstance(entry, Config) else entry for entry in value)
    return config.model_copy(update=changed)


def _real_path_or_name(path: Any, either: bool) -> Any:
    name = either and not _exists(Path(path)) and not str(path).endswith(WEIGHT_FILES)
    return path if name else type(path)(_real_path(path))


def _real_path(path: str | Path) -> str:
    try:
        return os.path.realpath(path)
    except (OSError, ValueError):  # a NUL, or a cycle of links: opening the file reports it
        return str(path)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _map_paths(value: Any, mark: PathOrName | None, change: Callable[[Any], Any]) -> Any:
    """Apply `change` to a path, or to each path of a list or table; a prefix that the mark names is kept."""
    if isinstance(value, str) and mark and mark.behind:
        prefix = next((prefix for prefix in mark.behind if value.startswith(prefix)), None)
        return value if prefix is None else prefix + change(value.removeprefix(prefix))
    if isinstance(value, str | Path):
        return change(value)
    if isinstance(value, list | tuple):
        return type(value)(_map_paths(entry, mark, change) for entry in value)
    if isinstance(value, dict):
        return {key: _map_paths(entry, mark, change) for key, entry in value.items()}
    return value
