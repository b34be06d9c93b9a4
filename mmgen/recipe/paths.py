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


def map_paths(value: Some, change: Change, at: Key = (), is_path: bool = False, mark: PathOrName | None = None) -> Some:
    """A config with `change(path, either, place)` instead of every path in it, and so a table, list or value of one.
    `mark`: of a path that may also be a name; a prefix that the mark names stays."""
    built: Any = type(value)  # of the same class
    if isinstance(value, Config):
        keys = path_keys(type(value))
        changed = {
            name: map_paths(getattr(value, name), change, (*at, name), name in keys, keys.get(name))
            for name in value.model_fields_set  # a default is relative to no file
        }
        return value.model_copy(update=changed)
    if isinstance(value, dict):
        return built((name, map_paths(inner, change, (*at, str(name)), is_path, mark)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return built(map_paths(inner, change, (*at, str(i)), is_path, mark) for i, inner in enumerate(value))
    if not is_path or not isinstance(value, str | Path):
        return value
    text, prefixes = str(value), mark.behind if mark else ()
    prefix = next((prefix for prefix in prefixes if text.startswith(prefix)), "")
    if prefixes and not prefix:
        return value
    return built(prefix + change(text.removeprefix(prefix), mark is not None, at))


def from_folder(text: str, folder: Path, either: bool = False) -> str:
    """A path relative to `folder`, resolved. `either`: a text without such a file, and without the ending of one, is a
    name."""
    if not text or folder == Path() or Path(text).is_absolute():
        return text
    joined = folder / text
    plain, missing = os.path.normpath(joined), either and not _exists(joined)
    if missing and not text.startswith(".") and not text.endswith(WEIGHT_FILES):
        return text
    if missing and text.startswith(".") and not folder.is_absolute():
        return f"./{plain}"  # still a path, not a name of the hub
    same = os.path.realpath(plain) == os.path.realpath(joined)  # after a link, `..` is another folder
    return plain if same else str(joined)


def with_real_paths(config: Some) -> Some:
    """The config with every path as its real path on this machine, so that two spellings of a path are equal."""

    def real(text: str, either: bool, at: Key) -> str:
        is_name = either and not _exists(text) and not text.endswith(WEIGHT_FILES)
        return text if is_name else os.path.realpath(text)

    return map_paths(config, real)


def without_local_paths(config: Some) -> Some:
    """The config with "local" in place of every path: what leaves this machine must not contain any."""

    def hide(text: str, either: bool, at: Key) -> str:
        is_name = either and not Path(text).is_absolute() and not _exists(text) and not text.endswith(WEIGHT_FILES)
        return text if is_name else "local"

    return map_paths(config, hide)


def _exists(path: str | Path) -> bool:
    return os.path.exists(path)  # noqa: PTH110  # pathlib raises OSError for a name that is too long
