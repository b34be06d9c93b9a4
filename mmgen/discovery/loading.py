"""Load the installed plugins: read their entry points, import their modules, and record those that fail."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import logging
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from .. import __version__
from .version import OURS, declared_version, version_problem

log = logging.getLogger("mmgen")


@dataclass(frozen=True)
class Source:
    """The source of a plugin: the name of its entry point, its distribution, and the distribution's version."""

    plugin: str
    distribution: str
    version: str

    @property
    def named(self) -> str:
        """The plugin and its distribution, for messages."""
        return f"plugin '{self.plugin}' ({self})"

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}"


@dataclass(frozen=True)
class BrokenPlugin:
    """A plugin, or one of its hooks, that failed."""

    source: Source
    reason: str

    def __str__(self) -> str:
        return f"{self.source.named} failed to load: {self.reason}"


def load(group: str) -> tuple[list[tuple[Source, ModuleType]], list[BrokenPlugin]]:
    """The modules of the entry points of a group, in order of their names, and the plugins that cannot be imported."""
    loaded, broken = [], []
    for entry, source in _entries(group, tuple(map(_state, sys.path))):
        try:
            imported = entry.module in sys.modules and not entry.attr  # then loading runs no code
            with contextlib.nullcontext() if imported else calling(source.named):
                loaded.append((source, entry.load()))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # whatever the import of a third party does, the other plugins load
            broken.append(BrokenPlugin(source, version_problem(declared_version(entry.module)) or reason(error)))
    return loaded, broken


def _state(folder: str) -> tuple[Path, int]:
    """A folder of `sys.path`, and when a file or folder in it was added or removed last, in nanoseconds."""
    path = Path(folder).absolute()
    try:
        return path, path.stat().st_mtime_ns
    except OSError:
        return path, 0


@functools.lru_cache(maxsize=4)
def _entries(group: str, path: tuple[tuple[Path, int], ...]) -> list[tuple[importlib.metadata.EntryPoint, Source]]:
    """The entry points of a group and their sources, in order of their names. Cached until `path` changes: when a
    distribution is installed or removed, but not when its files are rewritten in place. A command loads the plugins ten
    times, and the files of 100 distributions take 5 ms to read."""
    entries = []
    owners: dict[int, tuple[str, str]] = {}  # metadata is read once per distribution: ours has a dozen entry points
    for entry in sorted(importlib.metadata.entry_points(group=group), key=lambda entry: entry.name):
        assert entry.dist is not None  # only entry points built by hand have none
        if id(entry.dist) not in owners:
            about = entry.dist.metadata
            is_ours = re.sub(r"[-_.]+", "-", about["Name"]).lower() == OURS  # names may be spelled in several ways
            owners[id(entry.dist)] = (OURS, __version__) if is_ours else (about["Name"], about["Version"])
        entries.append((entry, Source(entry.name, *owners[id(entry.dist)])))
    return entries


@contextlib.contextmanager
def calling(owner: str) -> Iterator[None]:
    """A context for importing or calling a plugin's code. Its output goes to stderr, since programs read standard
    output. A warning names the owner if the code imports torch, which takes every command seconds."""
    imported = "torch" in sys.modules
    try:
        with contextlib.redirect_stdout(sys.stderr):
            yield
    finally:
        if not imported and "torch" in sys.modules:
            log.warning(f"{owner} imports torch when it is loaded; import large libraries only where a part is built")


def reason(error: BaseException) -> str:
    """The first line of an error, with its class unless it is an ImportError."""
    text = str(error).strip().partition("\n")[0]
    if isinstance(error, ImportError) and text:
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
