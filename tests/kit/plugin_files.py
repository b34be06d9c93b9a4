"""Plugins that are files: forgotten again, as at the end of a process."""

import contextlib
import sys
from collections.abc import Iterator

from mmgen import registry


@contextlib.contextmanager
def forgotten() -> Iterator[None]:
    """Files that are executed inside the context are unknown after it."""
    places = [*sys.path]
    try:
        yield
    finally:
        for _, module in registry._loaded_files.values():
            sys.modules.pop(module.__name__, None)
        registry._loaded_files.clear()
        registry.installed.cache_clear()
        sys.path[:] = places
