"""What a case leaves: the files of two folders compared byte by byte, files that nobody needs any more, and files of
which a part is missing."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Collection
from itertools import zip_longest
from pathlib import Path

import h5py
from safetensors import safe_open

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


def differences(
    expected: Path, actual: Path, ignored: Collection[str] = (), varying: Collection[str] = ()
) -> list[str]:
    """The files that are missing, left over or different, a line each. `ignored`: names of files that are not looked
    at; `varying`: of those that may have other bytes."""
    ours, theirs = files(expected, ignored), files(actual, ignored)
    compared = sorted(name for name in ours.keys() & theirs.keys() if ours[name].name not in varying)
    return [
        *(f"{name} is missing" for name in sorted(ours.keys() - theirs.keys())),
        *(f"{name} is left over" for name in sorted(theirs.keys() - ours.keys())),
        *(f"{name} differs" for name in compared if not same(ours[name], theirs[name])),
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


def torn(folder: Path) -> list[str]:
    """The files in a folder that cannot be read as what their names say, a line each; temporary files may be torn."""
    wrong = []
    for name, path in sorted(files(folder).items()):
        if path.suffix in READERS and not is_temporary(name):
            try:
                READERS[path.suffix](path)
            except Exception as error:  # whatever a reader raises
                wrong.append(f"{name} is torn: {type(error).__name__}: {error}"[:300])
    return wrong


def _read_lines(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if text and not text.endswith("\n"):
        raise ValueError("the last line has no end")
    for line in text.splitlines():
        json.loads(line)


def _read_page(path: Path) -> None:
    if not path.read_text(encoding="utf-8").rstrip().endswith("</html>"):
        raise ValueError("the page has no end")


def _read_tensors(path: Path) -> None:
    with safe_open(path, "np") as file:
        file.keys()


READERS: dict[str, Callable[[Path], object]] = {
    ".h5": lambda path: h5py.File(path).close(),
    ".html": _read_page,
    ".json": lambda path: json.loads(path.read_text(encoding="utf-8")),
    ".jsonl": _read_lines,
    ".safetensors": _read_tensors,
    ".toml": lambda path: tomllib.loads(path.read_text(encoding="utf-8")),
}
