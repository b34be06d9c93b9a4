"""Files: written completely or not at all, locks, JSON and tensors, digests, image keys, what the hub's cache has.

A file survives a kill, since it appears under its name only when it is complete; a lock ends with its process.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from safetensors import SafetensorError, safe_open

from .errors import MmgenError, RunError, UnavailableError

Written = TypeVar("Written")

MODEL_FILES = ("*.json", "*.txt", "*.model", "model*.safetensors")


def not_downloaded(name: str) -> str:
    """Why a model, a path or a name of the hub, cannot be loaded: it is not on this machine, which is set to be
    offline; "" if it can, or if the hub has to say it."""
    from huggingface_hub import constants
    from huggingface_hub.errors import HFValidationError

    try:
        if cached_model(name) or not constants.HF_HUB_OFFLINE:
            return ""
    except HFValidationError:
        return f"'{name}': no such file or folder"
    place = f"https://huggingface.co/{name.partition('@')[0]}"
    return f"'{name}' is not on this machine, as a folder or downloaded, and HF_HUB_OFFLINE is set; it is at {place}"


def cached_model(name: str) -> str:
    """The folder of a model that is on this machine: a path, or "user/name" or "user/name@revision" of the hub, whose
    safetensors are in the cache; else "". Raises HFValidationError for what is neither a path nor a name."""
    from huggingface_hub import try_to_load_from_cache

    if Path(name).exists():
        return name
    repository, _, revision = name.partition("@")
    for file in ("model.safetensors", "model.safetensors.index.json"):
        if isinstance(path := try_to_load_from_cache(repository, file, revision=revision or None), str):
            return str(Path(path).parent)
    return ""


def download_model(name: str, revision: str | None = None, files: Sequence[str] = MODEL_FILES) -> str:
    """Download these files of a model of the hub, of this revision unless the name has one. Returns their folder.
    Raises UnavailableError."""
    from huggingface_hub import snapshot_download

    (repository, _, pinned), names = name.partition("@"), [*files]
    with hub_errors(name, "downloaded"):
        return snapshot_download(repository, revision=pinned or revision, allow_patterns=names, ignore_patterns="*/*")


@contextlib.contextmanager
def hub_errors(name: str, what: str) -> Iterator[None]:
    """Raises UnavailableError for errors of the hub's client and of the network, which are of many kinds."""
    try:
        yield
    except Exception as error:
        reason = " ".join(str(error).split())[:200] or type(error).__name__
        advice = "check the name, the connection, and `hf auth login`"
        raise UnavailableError(f"{name}: cannot be {what}: {reason}; {advice}") from None


def model_folder(name: str) -> str:
    """The folder of a model, which is downloaded unless it is on this machine, so that the first download decides. A
    model that has no safetensors is left to transformers, which converts some: its name is returned. Raises
    UnavailableError."""
    return cached_model(name) or (download_model(name) and cached_model(name)) or name


def image_key(name: str) -> str:
    """The key of an image from its file name: COCO's image id without leading zeros, or else the stem.

    "COCO_train2014_000000314392.jpg" and "000000314392.jpg" -> "314392"; "my photo.jpg" -> "my photo".
    """
    stem = re.sub(r"\.(jpe?g|png|gif|bmp|webp|avif|tiff?|npz|npy)$", "", Path(name).name, flags=re.IGNORECASE)
    number = re.fullmatch(r"(?:COCO_\w+?_)?(\d{12})", stem)
    return str(int(number[1])) if number else stem


def write_atomically(path: Path, write: Callable[[Path], object]) -> None:
    """`write` fills a temporary file beside `path`, which is then renamed to `path`. Raises RunError if writing fails,
    or if `path` is a folder or a device."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    with write_errors(path, path.is_file()):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            partial.touch()
            rights = partial.stat().st_mode
            write(partial)
            partial.chmod(rights)  # safetensors creates files that only their owner may read
            partial.replace(path)
        finally:
            partial.unlink(missing_ok=True)


def write_folder(path: Path, write: Callable[[Path], Written]) -> Written:
    """`write` fills a temporary folder beside `path`, which is then renamed to `path`. After a kill the folder may be
    missing, but is never incomplete. Returns the result of `write`; raises RunError if writing fails, or if `path` is
    not a folder."""
    partial = path.with_name(f".{path.name}.partial")
    with write_errors(path, path.is_dir()):
        try:
            shutil.rmtree(partial, ignore_errors=True)  # of a writer that was killed
            new = partial / "new"
            new.mkdir(parents=True)
            written = write(new)
            if path.exists():
                path.replace(partial / "old")
            new.replace(path)
            return written
        finally:
            shutil.rmtree(partial, ignore_errors=True)


@contextlib.contextmanager
def write_errors(path: Path, replaceable: bool = True) -> Iterator[None]:
    """Raises RunError if a file cannot be written, or would replace something of another kind."""
    if path.exists() and not replaceable:
        raise RunError(f"{path}: already exists and would be replaced; choose another name")
    try:
        yield
    except Exception as error:
        if not isinstance(error, OSError) and "(os error " not in str(error):  # of safetensors and tokenizers, in Rust
            raise
        reason = getattr(error, "strerror", None) or error
        advice = "existing files are unchanged; re-run the same command to continue"
        raise RunError(f"{path}: cannot be written: {reason}; {advice}") from None


def clear_partials(folder: Path) -> None:
    """Delete the temporary files of killed writers in a folder; the caller must hold the lock of the folder."""
    for partial in list(folder.rglob(".*.partial")):
        with contextlib.suppress(OSError):
            shutil.rmtree(partial) if partial.is_dir() else partial.unlink()


@contextlib.contextmanager
def locked(path: Path, busy: Callable[[], object]) -> Iterator[None]:
    """A lock for one process at a time, the file at `path`. If another process holds it, `busy` is called once, and may
    raise; then this one waits. The system releases the lock when its process ends in any way; children (workers of a
    loader) do not inherit it. Raises OSError if it cannot be created."""
    from filelock import FileLock, Timeout  # from 3.30 on, a fork leaves the lock to the parent

    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        busy()
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def refuse_overwriting(option: str, out: Path | None, inputs: Iterable[Path | None] = ()) -> None:
    """Raises RunError if `out`, the value of `option`, is also an input file of the command."""
    if out and out.exists() and any(path and path.exists() and path.samefile(out) for path in inputs):
        raise RunError(f"{option} {out}: is also an input file and would be overwritten; choose another name")


def write_text(path: Path, text: str) -> None:
    """Write a text as UTF-8. Lone surrogates, which JSON files may contain, are escaped as \\uXXXX."""
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8", errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: missing; is this a run folder?") from None
    except (ValueError, RecursionError) as error:
        raise RunError(f"{path}: damaged: {json_problem(error)}") from None


@contextlib.contextmanager
def open_tensors(path: Path, absent: str, damaged: str = "", error_class: type[MmgenError] = RunError) -> Iterator[Any]:
    """An open file of safetensors. Raises an error, also for what is read inside the block, if the file is missing or
    damaged; `absent` and `damaged` say what to do then."""
    try:
        path.open("rb").close()  # safetensors reports any file it cannot open as missing
        with safe_open(path, "pt") as file:
            yield file
    except FileNotFoundError:
        raise error_class(f"{path}: missing; {absent}") from None
    except (SafetensorError, RuntimeError, ValueError, LookupError, TypeError, RecursionError) as error:
        # torch raises several for invalid dtypes and shapes
        reason = f"{path}: damaged: {str(error).partition(chr(10))[0]}"
        raise error_class("; ".join(filter(None, (reason, damaged)))) from None


def json_problem(error: Exception) -> str:
    """Why a JSON text cannot be read."""
    if isinstance(error, UnicodeDecodeError):
        return "not UTF-8"
    if isinstance(error, OSError):
        return error.strerror or str(error)
    if isinstance(error, json.JSONDecodeError):
        return f"not valid JSON: {error.msg} ({f'line {error.lineno}, ' * (error.lineno > 1)}column {error.colno})"
    return "nested too deeply, or a number has too many digits"


def read_table(path: Path, /, **kinds: type | tuple[type, ...]) -> dict[str, Any]:
    """A JSON object; `kinds`: types of required values by key. Raises RunError."""
    table = read_json(path)
    if not isinstance(table, dict):
        raise RunError(f"{path}: damaged: expected a JSON object")
    for name, kind in kinds.items():
        if not isinstance(table.get(name), kind):
            raise RunError(f"{path}: damaged: {name!r:.60} is {json.dumps(table.get(name, 'missing'))[:40]}")
    return table
