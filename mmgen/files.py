"""Files that survive a kill: each appears under its name whole or not at all; locks that end with their process; and
texts and JSON, read to a limit and with their mistakes named; and the key that an image has by its file's name."""

from __future__ import annotations

import contextlib
import gzip
import json
import os
import platform
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError

from .errors import DataError, RunError, regular

MOST_BYTES = 1 << 30  # of a text, unpacked: the largest published file of captions has a tenth of this
PIECE = 1 << 24
Written = TypeVar("Written")


def image_key(name: str) -> str:
    """The key of an image from its file's name: COCO's image id without zeros where there is one, else the stem.

    "COCO_train2014_000000314392.jpg" and "000000314392.jpg" -> "314392"; "my photo.jpg" -> "my photo".
    """
    stem = re.sub(r"\.(jpe?g|png|gif|bmp|webp|tiff?|npz|npy)$", "", Path(name).name, flags=re.IGNORECASE)
    number = re.fullmatch(r"(?:COCO_\w+?_)?(\d{12})", stem)
    return str(int(number[1])) if number else stem


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a temporary file beside `path`, which then takes its name, with the rights that any new file has
    there. Raises RunError when the disk refuses."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()
        rights = partial.stat().st_mode
        write(partial)
        partial.chmod(rights)  # safetensors makes files that nobody else may read
        take_name(partial, path)
    except (OSError, SafetensorError) as error:
        raise _refused(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def take_name(partial: Path, path: Path) -> None:
    """A whole file beside `path` takes its name, and that outlives a loss of power. Raises OSError."""
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def write_folder(path: Path, write: Callable[[Path], Written]) -> Written:
    """`write` fills a temporary folder beside `path`, which then takes its name. A kill may leave no folder, never half
    of one. Returns what `write` returns; raises RunError when the disk refuses."""
    partial, spent = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("partial", "spent.partial"))
    try:
        partial.mkdir(parents=True)
        written = write(partial)
        for file in partial.rglob("*"):
            sync(file)
        if path.exists():
            path.replace(spent)
        take_name(partial, path)
        return written
    except OSError as error:
        raise _refused(path, error) from None
    finally:
        for folder in (partial, spent):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def locked(path: Path, busy: Callable[[str], None]) -> Iterator[None]:
    """Only one process at a time; it writes into the file at `path` who it is.

    While another one holds the lock, `busy` is called again and again with what that one wrote, and may raise. The
    system lets go of the lock when its process ends, however it ends: children (a loader's workers) do not inherit it.
    Raises OSError where no lock can be made."""
    from filelock import FileLock, Timeout  # from 3.30 on, whose locks a fork leaves to the parent

    lock = FileLock(path, thread_local=False)
    while True:
        with contextlib.suppress(Timeout):
            lock.acquire(blocking=False)
            break
        holder = ""
        with contextlib.suppress(OSError):
            holder = path.read_text(encoding="utf-8", errors="replace")[:200].strip()
        busy(holder)
    try:
        with contextlib.suppress(OSError):  # a full disk has no room for who we are
            path.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def refuse_overwriting(option: str, out: Path | None, inputs: Iterable[Path | None]) -> None:
    """Raises RunError where writing `out`, which `option` names, would destroy a file that the command reads, or one
    that is no text: a picture, features or weights."""
    if out and out.exists() and any(own and own.exists() and out.samefile(own) for own in inputs):
        raise RunError(f"{option} {out}: is what is read, and would be overwritten; name another file")
    if out and out.is_file():
        with contextlib.suppress(OSError), out.open("rb") as file:
            if b"\0" in file.read(4096):
                raise RunError(f"{option} {out}: is there already, and is no text; name another file, or delete it")


def clear_partials(folder: Path) -> None:
    """Deletes what writers that were killed have left in a folder; only for whoever holds its lock."""
    for partial in list(folder.rglob(".*.partial")):
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _refused(path: Path, error: Exception) -> RunError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    there = "what was there before is untouched"
    if isinstance(error, PermissionError):
        owner = "ask whoever the folder belongs to for the right to write, then the same command goes on from there"
        return RunError(f"{path}: cannot be written: {why}; {there}; {owner}")
    return RunError(f"{path}: cannot be written: {why}; {there}, and the same command goes on from there")


def _closed(path: Path, error: PermissionError) -> RunError:
    return RunError(f"{path}: may not be read: {error.strerror}; ask whoever it belongs to for the right to")


def write_text(path: Path, text: str) -> None:
    """UTF-8. Lone surrogates, which JSON files may hold, are written as \\uXXXX escapes."""
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8", errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_bytes(path: Path, what: str) -> bytearray:
    """A file's bytes, unpacked where it is gzipped, read once and never more than `MOST_BYTES` of them: a small file
    may unpack to more than fits into memory. `what` it should be, for the error. Raises DataError, or what reading
    raises: OSError, EOFError and zlib.error."""
    whole = bytearray()
    with regular(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        reader = gzip.GzipFile(fileobj=file) if packed else file
        while piece := reader.read(PIECE):
            if len(whole) + len(piece) > MOST_BYTES:
                raise DataError(f"{path}: over {MOST_BYTES >> 20:,} MB of text; that is no file of {what}")
            whole += piece
    return whole


def read_json(path: Path) -> Any:
    try:
        return json.loads(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: missing; is this a run folder?") from None
    except PermissionError as error:
        raise _closed(path, error) from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: damaged: {error}") from None


def read_table(path: Path, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """A JSON object; `kinds`: what it must hold under these names. Raises RunError."""
    table = read_json(path)
    if not isinstance(table, dict):
        raise RunError(f"{path}: damaged: it holds no table")
    for name, kind in kinds.items():
        if not isinstance(table.get(name), kind):
            raise RunError(
                f"{path}: damaged: '{name}' is {'missing' if name not in table else json.dumps(table[name])[:40]}"
            )
    return table


def sync(path: Path) -> None:
    """What was written to a file, or the names in a folder, are on the disk and outlive a loss of power."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
