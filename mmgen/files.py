"""Files: written completely or not at all, locks, names not to be overwritten, reading JSON, digests, image keys.

A file survives a kill, since it appears under its name only when it is complete; a lock ends with its process; texts
and JSON are read with a size limit and clear errors.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import json
import os
import platform
import re
import shutil
import ssl
import stat
import urllib.error
import urllib.request
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open

from .errors import DataError, MmgenError, RunError, regular

MOST_BYTES = 1 << 30  # of an unpacked text; the largest published caption file has a tenth of this
PIECE = 1 << 24
SPENT = "spent.partial"  # end of the name of a folder that is being replaced
Written = TypeVar("Written")
SPECIAL = {  # what only looks like a file
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a link",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
UNPACK, DOWNLOAD = "unpack it first", "download the file itself"
BEGINNINGS = (  # kind, first bytes, what such a file is, what to do where another kind is expected
    ("lfs", b"version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch the file with `git lfs pull`"),
    ("html", b"<!doctype html", "a web page", DOWNLOAD),
    ("html", b"<html", "a web page", DOWNLOAD),
    ("pdf", b"%PDF-", "a PDF document", DOWNLOAD),
    ("hdf5", b"\x89HDF\r\n", "an HDF5 file", "a feature store in this format is given as features"),
    ("numpy", b"\x93NUMPY", "a NumPy array", "save it in the expected format"),
    ("picture", b"\x89PNG\r\n", "a picture (PNG)", "give another file"),
    ("picture", b"\xff\xd8\xff", "a picture (JPEG)", "give another file"),
    ("picture", b"GIF8", "a picture (GIF)", "give another file"),
    ("photo", b"\0\0\0\x0cJXL ", "a JPEG XL picture", "convert it to JPEG or PNG"),
    ("photo", b"\xff\x0a", "a JPEG XL picture", "convert it to JPEG or PNG"),
    ("photo", b"\0\0\0\x0cjP  ", "a JPEG 2000 picture", "convert it to JPEG or PNG"),
    ("zip", b"PK\x03\x04", "a zip archive", UNPACK),
    ("zip", b"PK\x05\x06", "an empty zip archive", DOWNLOAD),
    ("gzip", b"\x1f\x8b", "a gzip archive", UNPACK),
    ("archive", b"BZh", "a bzip2 archive", UNPACK),
    ("archive", b"\xfd7zXZ", "an xz archive", UNPACK),
    ("archive", b"7z\xbc\xaf", "a 7-Zip archive", UNPACK),
    ("archive", b"Rar!", "a RAR archive", UNPACK),
    ("archive", b"\x28\xb5\x2f\xfd", "a Zstandard archive", UNPACK),
    ("parquet", b"PAR1", "a Parquet file", "save it in the expected format"),
)
BRANDS = {  # of files of MPEG's container, by which pictures of phones and cameras begin
    **dict.fromkeys((b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1"), "a HEIC photo"),
    **dict.fromkeys((b"avif", b"avis"), "an AVIF picture"),
    b"crx ": "a camera's raw file",
}
RUN_FILES = (  # in a run folder
    "steps",
    "backbone",
    "probes",
    "curves",
    "recipe.json",
    "environment.json",
    "data.json",
    "inputs.json",
    "labels.json",
    "examples",
    "examples.jsonl",
    "report.html",
    "table.md",
    "times.json",
)


def not_downloaded(name: str, file: str = "config.json", size: Callable[[], str] = lambda: "") -> str:
    """Why a model, a path or a name of the hub, cannot be loaded: it is not on this machine, which is offline; "" if it
    can, or if the hub has to say it. `size`: of the download, such as " (47 MB)"."""
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        if Path(name).exists() or isinstance(try_to_load_from_cache(name, file), str):
            return ""
    except HFValidationError:
        return f"'{name}': no such file or folder"
    reason = "HF_HUB_OFFLINE is set"
    if not constants.HF_HUB_OFFLINE:
        if answers(constants.ENDPOINT):
            return ""
        reason = "the hub cannot be reached"
    return f"'{name}' is not on this machine, as a folder or downloaded, and {reason}; it is at https://huggingface.co/{name}{size()}"


def not_fetched(address: str, folder: Path, megabytes: float) -> str:
    """Why the file of a web address, which belongs into `folder`, cannot be had; "" if it can."""
    if (folder / Path(address).name).exists() or answers(address):
        return ""
    return f"not on this machine, and out of reach: {address} ({megabytes:.0f} MB); put the file into {folder}"


@functools.cache
def answers(address: str) -> bool:
    """Whether the server of a web address can be reached; each is tried once."""
    try:
        urllib.request.urlopen(urllib.request.Request(address, method="HEAD"), timeout=10).close()
    except (OSError, ValueError) as error:
        # an answer of any kind; a certificate that only others know; a kind of proxy that only others use
        reason = getattr(error, "reason", error)
        known = isinstance(error, urllib.error.HTTPError) or isinstance(reason, ssl.SSLError)
        return known or "all" in urllib.request.getproxies()
    return True


def image_key(name: str) -> str:
    """The key of an image from its file name: COCO's image id without leading zeros, or else the stem.

    "COCO_train2014_000000314392.jpg" and "000000314392.jpg" -> "314392"; "my photo.jpg" -> "my photo".
    """
    stem = re.sub(r"\.(jpe?g|png|gif|bmp|webp|avif|tiff?|npz|npy)$", "", Path(name).name, flags=re.IGNORECASE)
    number = re.fullmatch(r"(?:COCO_\w+?_)?(\d{12})", stem)
    return str(int(number[1])) if number else stem


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a temporary file beside `path`, which is then renamed to `path`, with the permissions of a new
    file. Raises RunError if writing fails, or if `path` is not a regular file."""
    refuse_special(path)
    partial = _partial_path(path, os.getpid())
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_killed(path)
        partial.touch()
        rights = partial.stat().st_mode
        write(partial)
        partial.chmod(rights)  # safetensors creates files that only their owner may read
        take_name(partial, path)
    except (OSError, SafetensorError) as error:
        raise _write_error(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def take_name(partial: Path, path: Path) -> None:
    """Rename a complete file beside `path` to `path`, safe from a power cut. Raises OSError."""
    sync(partial)
    partial.replace(path)
    sync(path.parent)


def write_folder(path: Path, write: Callable[[Path], Written]) -> Written:
    """`write` fills a temporary folder beside `path`, which is then renamed to `path`. After a kill the folder may be
    missing, but is never incomplete. Returns the result of `write`; raises RunError if writing fails, or if `path` is
    not a folder."""
    refuse_special(path, stat.S_IFDIR)
    partial, spent = _partial_path(path, os.getpid()), _partial_path(path, os.getpid(), SPENT)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        clear_killed(path)
        partial.mkdir()
        written = write(partial)
        for file in partial.rglob("*"):
            sync(file)
        if path.exists():
            path.replace(spent)
        take_name(partial, path)
        return written
    except UnicodeEncodeError as error:  # tokenizers take no other names
        if partial.name not in error.object:
            raise
        raise RunError(f"{path}: cannot be written: the name is not UTF-8; choose another name") from None
    except Exception as error:
        if not isinstance(error, OSError) and "(os error " not in str(error):  # of safetensors and tokenizers, in Rust
            raise
        raise _write_error(path, error) from None
    finally:
        _delete_partials(path, os.getpid(), [partial])


def clear_killed(path: Path) -> None:
    """Delete the temporary files that killed writers of `path` left beside it. A folder that one of them was replacing
    gets its name back. Files of processes that run, or of other machines, stay."""
    pattern = re.compile(rf"\.{re.escape(path.name)}\.{_machine_id()}\.(\d+)\..*partial")
    with contextlib.suppress(OSError):
        names = [match for file in path.parent.iterdir() if (match := pattern.fullmatch(file.name))]
        for pid in {int(match[1]) for match in names}:
            if not _is_running(pid):
                _delete_partials(path, pid, [path.with_name(match[0]) for match in names if int(match[1]) == pid])


def _delete_partials(path: Path, pid: int, partials: Iterable[Path]) -> None:
    """Delete the temporary files of a process. A folder that it was replacing gets its name back if that is free, and
    is deleted under another name, so that no incomplete folder gets its name back."""
    spent = _partial_path(path, pid, SPENT)
    with contextlib.suppress(OSError):
        if not path.exists() and spent.exists():
            spent.replace(path)
    for file in partials:
        if file != spent:
            _delete(file)
    with contextlib.suppress(OSError):
        if spent.exists():
            _delete(spent.replace(_partial_path(path, pid)))


def _partial_path(path: Path, pid: int, end: str = "partial") -> Path:
    """The temporary file of a process beside `path`."""
    return path.with_name(f".{path.name}.{_machine_id()}.{pid}.{end}")


def _machine_id() -> str:
    return f"{zlib.crc32(platform.node().encode()):08x}"


def _is_running(pid: int) -> bool:
    """Whether another process with this number runs on this machine."""
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return pid != os.getpid()  # a killed process of a container may have had the number of this one


def _delete(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextlib.contextmanager
def locked(path: Path, busy: Callable[[str], None]) -> Iterator[None]:
    """A lock for one process at a time, which writes its id into the file at `path`.

    While another process holds the lock, `busy` is called repeatedly with the text of that process, and may raise. The
    system releases the lock when its process ends in any way; children (workers of a loader) do not inherit the lock.
    Raises OSError if the lock cannot be created."""
    from filelock import FileLock, Timeout  # from 3.30 on, a fork leaves the lock to the parent

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
        with contextlib.suppress(OSError):  # on a full disk, the lock works without the text
            path.write_text(f"process {os.getpid()} on {platform.node()}", encoding="utf-8")
        yield
    finally:
        lock.release()


def refuse_special(path: Path, replaced: int = stat.S_IFREG, option: str = "") -> None:
    """Raises RunError if `path`, the value of `option`, is a link, a device, a pipe or a socket: a new file would take
    its place. `replaced`: the type that may be replaced."""
    try:
        kind = stat.S_IFMT(path.lstat().st_mode)
    except (OSError, ValueError):  # missing, or a name that cannot be written either
        return
    if kind != replaced:
        what = f"{SPECIAL.get(kind, 'a file')}{f' to {path.readlink()}' if kind == stat.S_IFLNK else ''}"
        raise RunError(f"{option} {path}: is {what}, which would be replaced; choose another name".strip())


def refuse_overwriting(option: str, out: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Raises RunError if writing `out`, the value of `option`, would destroy an input file of the command, a file of a
    run, anything but a regular file, or a file that is not text: a picture, features or weights."""
    if out is None or not os.path.lexists(out):
        return
    refuse_special(out, option=option)
    real = os.path.realpath(out)  # Path.resolve raises RuntimeError for a link to itself
    if any(path and os.path.lexists(path) and real == os.path.realpath(path) for path in inputs):
        raise RunError(f"{option} {out}: is also an input file and would be overwritten; choose another name")
    target = Path(real)
    for folder in target.parents:
        if target.relative_to(folder).parts[0] in RUN_FILES and all(
            (folder / name).is_file() for name in ("recipe.json", "environment.json")
        ):
            raise RunError(f"{option} {out}: is a file of a run and would be overwritten; choose another name")
    with contextlib.suppress(OSError), out.open("rb") as file:
        if b"\0" in file.read(4096):
            raise RunError(
                f"{option} {out}: already exists and is not a text file; choose another name or delete the file"
            )


def foreign(content: Path | bytes | bytearray, *expected: str) -> str:
    """What a file is, by its first bytes, and what to do; empty if it is one of the `expected` kinds, or unknown. The
    kinds: those of BEGINNINGS; "tar", "torch" and "safetensors"."""
    if isinstance(content, Path):
        try:
            with regular(content).open("rb") as file:
                content = file.read(512)
        except OSError:
            return ""
    start = bytes(content[:512])
    text = start.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    for kind, first, what, advice in BEGINNINGS:
        if start.startswith(first) or (kind in ("html", "lfs") and text.startswith(first)):
            if kind == "zip" and start[30:200].partition(b"/")[2].startswith((b"data.pkl", b"version", b"byteorder")):
                kind, what, advice = "torch", "a torch file", "name it .bin or .pt"
            elif b".npy" in start[30:200]:
                kind, what, advice = "numpy", "a NumPy archive", "save it in the expected format"
            break
    else:
        if start[257:262] == b"ustar":
            kind, what, advice = "tar", "a tar archive", UNPACK
        elif start[4:8] == b"ftyp" and (what := BRANDS.get(start[8:12], "")):
            kind, advice = "photo", "convert it to JPEG or PNG"
        elif start[8:10] == b'{"' and 0 < int.from_bytes(start[:8], "little") < MOST_BYTES:
            kind, what, advice = "safetensors", "a safetensors file", "name it .safetensors"
        else:
            return ""
    return "" if kind in expected else f"is {what}; {advice}"


def clear_partials(folder: Path) -> None:
    """Delete the temporary files of killed writers in a folder; the caller must hold the lock of the folder."""
    for partial in list(folder.rglob(".*.partial")):
        _delete(partial)


def _write_error(path: Path, error: Exception) -> RunError:
    reason = error.strerror if isinstance(error, OSError) and error.strerror else error
    unchanged = "existing files are unchanged"
    if isinstance(error, PermissionError):
        advice = "ask the owner of the folder for write permission, then re-run the same command to continue"
        return RunError(f"{path}: cannot be written: {reason}; {unchanged}; {advice}")
    return RunError(f"{path}: cannot be written: {reason}; {unchanged}; re-run the same command to continue")


def _read_error(path: Path, error: PermissionError) -> RunError:
    return RunError(f"{path}: cannot be read: {error.strerror}; ask the owner of the file for read permission")


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8. Lone surrogates, which JSON files may contain, are escaped as \\uXXXX."""
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8", errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_bytes(path: Path) -> bytearray:
    """The bytes of a file, unpacked if it is gzipped, at most `MOST_BYTES`, since a small file may unpack to more than
    fits into memory. Raises DataError, and the errors of reading: OSError, EOFError and zlib.error."""
    data = bytearray()
    with regular(path).open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
        file.seek(0)
        reader = gzip.GzipFile(fileobj=file) if packed else file
        while piece := reader.read(PIECE):
            if len(data) + len(piece) > MOST_BYTES:
                raise DataError(f"{path}: over {MOST_BYTES >> 20:,} MB of text, which is too large for a data set")
            data += piece
    return data


def read_json(path: Path) -> Any:
    try:
        return json.loads(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: missing; is this a run folder?") from None
    except PermissionError as error:
        raise _read_error(path, error) from None
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{path}: {foreign(path) or f'damaged: {json_problem(error)}'}") from None


@contextlib.contextmanager
def open_tensors(path: Path, absent: str, damaged: str = "", error_class: type[MmgenError] = RunError) -> Iterator[Any]:
    """An open file of safetensors. Raises an error, also for what is read inside the block, if the file is missing or
    damaged; `absent` and `damaged` say what to do then."""
    try:
        regular(path).open("rb").close()  # safetensors reports any file it cannot open as missing
        with safe_open(path, "pt") as file:
            yield file
    except FileNotFoundError:
        raise error_class(f"{path}: missing; {absent}") from None
    except PermissionError as error:
        raise _read_error(path, error) from None
    except (OSError, SafetensorError, RuntimeError, ValueError, LookupError, TypeError, RecursionError) as error:
        # torch raises several for invalid dtypes and shapes
        reason = foreign(path, "safetensors") or f"damaged: {str(error).partition(chr(10))[0]}"
        raise error_class("; ".join(filter(None, (f"{path}: {reason}", damaged)))) from None


def json_problem(error: Exception) -> str:
    """Why a JSON text cannot be read."""
    if isinstance(error, json.JSONDecodeError):
        line = f"line {error.lineno}, " * (error.lineno > 1)
        return f"not valid JSON: {error.msg} ({line}column {error.colno})"
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    return "nested too deeply" if isinstance(error, RecursionError) else "a number has too many digits"


def read_table(path: Path, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """A JSON object; `kinds`: types of required values by key. Raises RunError."""
    table = read_json(path)
    if not isinstance(table, dict):
        raise RunError(f"{path}: damaged: expected a JSON object")
    check_table(table, path, kinds)
    return table


def check_table(table: Mapping[str, Any], path: Path, kinds: Mapping[str, type | tuple[type, ...]]) -> None:
    """Raises RunError if a JSON object from `path` lacks a value of these types by key."""
    for name, kind in kinds.items():
        if not isinstance(table.get(name), kind):
            raise RunError(
                f"{path}: damaged: {name!r:.60} is {'missing' if name not in table else json.dumps(table[name])[:40]}"
            )


def file_fingerprint(paths: Iterable[Path]) -> str:
    """A text that changes when one of these files changes: their names, sizes and dates. Raises OSError."""
    states = [(str(path.resolve()), path.stat().st_size, path.stat().st_mtime_ns) for path in paths]
    return hashlib.sha256(repr(states).encode()).hexdigest()


def sync(path: Path) -> None:
    """Flush a file, or the names in a folder, to the disk, so that they survive a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
