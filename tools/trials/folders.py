"""What a case leaves: the files of two folders compared byte by byte, and files that nobody needs any more."""

from __future__ import annotations

from collections.abc import Collection
from itertools import zip_longest
from pathlib import Path

PIECE = 1 << 22


def files(folder: Path, ignored: Collection[str] = ()) -> dict[str, Path]:
    """The files and empty folders in a folder by their paths in it, hidden ones too."""
    return {
        str(path.relative_to(folder)): path
        for path in folder.rglob("*")
        if path.name not in ignored and (not path.is_dir() or not any(path.iterdir()))
    }


def same(left: Path, right: Path) -> bool:
    """Whether two files have the same bytes; empty folders have none."""
    if left.is_dir() or right.is_dir():
        return left.is_dir() and right.is_dir()
    if left.stat().st_size != right.stat().st_size:
        return False
    with left.open("rb") as first, right.open("rb") as second:
        pieces = zip_longest(iter(lambda: first.read(PIECE), b""), iter(lambda: second.read(PIECE), b""))
        return all(one_piece == piece for one_piece, piece in pieces)


def differences(expected: Path, actual: Path, ignored: Collection[str] = ()) -> list[str]:
    """The files that are missing, left over or different, a line each."""
    ours, theirs = files(expected, ignored), files(actual, ignored)
    return [
        *(f"{name} is missing" for name in sorted(ours.keys() - theirs.keys())),
        *(f"{name} is left over" for name in sorted(theirs.keys() - ours.keys())),
        *(f"{name} differs" for name in sorted(ours.keys() & theirs.keys()) if not same(ours[name], theirs[name])),
    ]


def is_temporary(name: str) -> bool:
    """Whether a path is that of a writer's own file: hidden, partial, or a lock."""
    return name.endswith((".partial", ".lock")) or any(part.startswith(".") for part in Path(name).parts)


def incomplete(before: Path, after: Path, actual: Path, may_lack: bool) -> list[str]:
    """What is wrong in a folder after a kill: a file with neither its bytes `before` nor those `after` the work, or one
    of those before that is missing, unless the work replaces folders (`may_lack`)."""
    old, new, now = files(before), files(after), files(actual)
    wrong = [
        f"{name} is incomplete after the kill"
        for name, path in now.items()
        if not is_temporary(name) and not any(name in version and same(version[name], path) for version in (old, new))
    ]
    lost = [] if may_lack else [name for name in old if name not in now and not is_temporary(name)]
    return wrong + [f"{name} is missing after the kill" for name in lost]
