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


def path_prefixes(cls: type[Config], key: str) -> tuple[str, ...] | None:
    """The prefixes of a key whose value may be a path or a name ("" if it needs none); () for a path, None for other
    keys."""
    info = cls.model_fields[key]
    for mark in info.metadata:
        if isinstance(mark, PathOrName):
            return mark.behind or ("",)
        if isinstance(mark, RelativeTo):
            return None
    return () if Path in classes_in(info.annotation) else None


def map_paths(value: Some, change: Change, at: Key = (), prefixes: tuple[str, ...] | None = None) -> Some:
    """A config with `change(path, either, place)` instead of every path in it, and so a table, list or value of one.
    `prefixes`: see `path_prefixes`; a prefix stays."""
    built: Any = type(value)  # of the same class
    if isinstance(value, Config):
        changed = {
            name: map_paths(getattr(value, name), change, (*at, name), path_prefixes(type(value), name))
            for name in value.model_fields_set  # a default is relative to no file
        }
        return value.model_copy(update=changed)
    if isinstance(value, dict):
        return built((name, map_paths(inner, change, (*at, str(name)), prefixes)) for name, inner in value.items())
    if isinstance(value, list | tuple):
        return built(map_paths(inner, change, (*at, str(i)), prefixes) for i, inner in enumerate(value))
    if prefixes is not None and isinstance(value, str | Path):
        for prefix in prefixes or ("",):
            if (text := str(value)).startswith(prefix):
                return built(prefix + change(text.removeprefix(prefix), bool(prefixes), at))
    return value


def from_folder(text: str, folder: Path, either: bool = False) -> str:
    """A path relative to `folder`, resolved. `either`: a text without such a file, and without the ending of one, is a
    name."""
    if not text or folder == Path() or Path(text).is_absolute():
        return text
    joined = str(folder / text)
    if not text.startswith(".") and either and not (os.path.exists(joined) or text.endswith(WEIGHT_FILES)):  # noqa: PTH110
        return text
    plain = os.path.normpath(joined)
    if os.path.realpath(plain) != os.path.realpath(joined):  # after a link, `..` is another folder
        return joined
    return f"./{plain}" if _is_name(plain, either) else plain  # still a path, not a name of the hub


def with_real_paths(config: Some) -> Some:
    """The config with every path as its real path on this machine, so that two spellings of a path are equal."""
    return map_paths(config, lambda text, either, at: text if _is_name(text, either) else os.path.realpath(text))


def without_local_paths(config: Some) -> Some:
    """The config with "local" in place of every path: what leaves this machine must not contain any."""

    return map_paths(config, lambda text, either, at: text if _is_name(text, either) else "local")


def _is_name(text: str, either: bool) -> bool:
    """Whether what may be a path or a name is a name: no such file exists, and it does not look like one."""
    exists = os.path.exists(text)  # noqa: PTH110  # pathlib raises OSError for a name that is too long
    return either and not exists and not text.startswith("/") and not text.endswith(WEIGHT_FILES)
