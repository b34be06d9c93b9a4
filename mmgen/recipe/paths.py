"""Paths in a recipe: which keys are paths, what they are relative to, and their real paths on this machine.

A path is relative to the folder of the file that contains it; a path of --set is relative to the current folder, as
all paths on the command line are."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from ..configs import Config, PathOrName, RelativeTo, classes_in
from .toml_lines import Key

Some = TypeVar("Some")
Change = Callable[[str, bool, Key], str]  # of a path, whether it may also be a name, and its place
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
        either = next((mark for mark in info.metadata if isinstance(mark, PathOrName)), None)
        relative = any(isinstance(mark, RelativeTo) for mark in info.metadata)
        if either or (Path in classes_in(info.annotation) and not relative):
            marks_by_key[name] = either
    return marks_by_key


def map_paths(value: Some, change: Change, at: Key = ()) -> Some:
    """A config, or a table or tuple of configs, with `change(path, either, place)` instead of every path in it."""
    if isinstance(value, dict):
        return type(value)((name, map_paths(inner, change, (*at, str(name)))) for name, inner in value.items())
    if isinstance(value, tuple):
        return type(value)(map_paths(inner, change, (*at, str(number))) for number, inner in enumerate(value))
    if not isinstance(value, Config):
        return value
    keys = path_keys(type(value))
    changed: dict[str, Any] = {
        name: _map(inner, keys[name], change, (*at, name)) if name in keys else map_paths(inner, change, (*at, name))
        for name, inner in value
    }
    return value.model_copy(update=changed)


def _map(value: Any, mark: PathOrName | None, change: Change, at: Key) -> Any:
    """A path, or each path of a list or table, changed; a prefix that the mark names stays."""
    if isinstance(value, dict):
        return {name: _map(inner, mark, change, at) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(_map(inner, mark, change, at) for inner in value)
    if not isinstance(value, str | Path):
        return value
    prefixes = mark.behind if mark else ()
    prefix = next((prefix for prefix in prefixes if str(value).startswith(prefix)), "")
    if prefixes and not prefix:
        return value
    return type(value)(prefix + change(str(value).removeprefix(prefix), mark is not None, at))


def from_folder(text: str, folder: Path, either: bool = False) -> str:
    """A path relative to `folder`, resolved. `either`: a text without such a file, and without the ending of one, is a
    name."""
    if not text or folder == Path() or Path(text).is_absolute():
        return text
    joined = folder / text
    plain, missing = os.path.normpath(joined), either and not os.path.exists(joined)
    if missing and not text.startswith(".") and not text.endswith(WEIGHT_FILES):
        return text
    if missing and text.startswith(".") and not folder.is_absolute():
        return f"./{plain}"  # still a path, not a name of the hub
    same = os.path.realpath(plain) == os.path.realpath(joined)  # after a link, `..` is another folder
    return plain if same else str(joined)


def with_real_paths(config: Some) -> Some:
    """The config with every path as its real path on this machine, so that two spellings of a path are equal."""

    def real(text: str, either: bool, at: Key) -> str:
        is_name = either and not os.path.exists(text) and not text.endswith(WEIGHT_FILES)
        return text if is_name else os.path.realpath(text)

    return map_paths(config, real)
