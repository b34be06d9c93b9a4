"""Source files as syntax trees, each parsed and walked once for all tests of a process."""

import ast
import functools
from collections.abc import Iterator
from pathlib import Path

import pytest


@functools.cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@functools.cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All nodes of a file, in no particular order; several times as fast as `ast.walk`."""
    walked: list[ast.AST] = [parsed(path)]
    for node in walked:
        for value in vars(node).values():
            if isinstance(value, list):
                walked += [item for item in value if isinstance(item, ast.AST)]
            elif isinstance(value, ast.AST):
                walked.append(value)
    return tuple(walked)


@pytest.fixture(scope="module", autouse=True)
def forget() -> Iterator[None]:
    """For files that read all sources: their trees do not stay for the tests of other files."""
    yield
    parsed.cache_clear()
    nodes.cache_clear()
