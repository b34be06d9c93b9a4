"""Files that survive a kill: weights and training state as safetensors, everything else as JSON, each written
atomically.

No pickle is written or read. A file appears under its name whole or not at all.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .errors import RunError, regular
from .journal import sync

CHECKSUM = "crc32"  # its name in a safetensors file's metadata


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """`write` fills a temporary file beside `path`, which then takes its name, with the rights that any new file has
    there. Raises RunError when the disk refuses."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        partial.touch()
        rights = partial.stat().st_mode
        write(partial)
        partial.chmod(rights)  # safetensors makes files that nobody else may read
        sync(partial)
        partial.replace(path)
        sync(path.parent)
    except (OSError, SafetensorError) as error:
        raise _refused(path, error) from None
    finally:
        with contextlib.suppress(OSError):
            partial.unlink(missing_ok=True)


def write_folder(path: Path, write: Callable[[Path], None]) -> None:
    """`write` fills a temporary folder beside `path`, which then takes its name. A kill may leave no folder, never half
    of one."""
    partial, spent = (path.with_name(f".{path.name}.{os.getpid()}.{end}") for end in ("partial", "spent.partial"))
    try:
        partial.mkdir(parents=True)
        write(partial)
        for file in partial.rglob("*"):
            sync(file)
        if path.exists():
            path.replace(spent)
        partial.replace(path)
        sync(path.parent)
    except OSError as error:
        raise _refused(path, error) from None
    finally:
        for folder in (partial, spent):
            shutil.rmtree(folder, ignore_errors=True)


def clear_partials(folder: Path) -> None:
    """Deletes what writers that were killed have left in a folder; only for whoever holds its lock."""
    for partial in [*folder.rglob(".*.partial")]:
        if partial.is_dir():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)


def _refused(path: Path, error: Exception) -> RunError:
    why = error.strerror if isinstance(error, OSError) and error.strerror else error
    return RunError(
        f"{path}: cannot be written: {why}; what was there before is untouched, and the same command goes on from there"
    )


def _closed(path: Path, error: PermissionError) -> RunError:
    return RunError(f"{path}: may not be read: {error.strerror}; ask whoever it belongs to for the right to")


def write_text(path: Path, text: str) -> None:
    """UTF-8; half a character, which some JSON files have and UTF-8 has not, is written as JSON spells it."""
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8", errors="backslashreplace"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


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


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """With a checksum over everything, so that a disk's mistake is no other result."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = dict(metadata or {})
    about[CHECKSUM] = checksum(whole, about)
    write_atomically(path, lambda partial: save_file(whole, partial, about))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and metadata. Raises RunError for a file that is damaged, be it by one bit."""
    try:
        regular(path).open("rb").close()  # safetensors calls missing whatever it cannot open
        with safe_open(path, "pt") as file:
            tensors, about = {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError:
        raise RunError(f"{path}: missing; has this step been run?") from None
    except PermissionError as error:
        raise _closed(path, error) from None
    except (
        OSError,
        SafetensorError,
        RuntimeError,
        ValueError,
        LookupError,
        TypeError,
    ) as error:  # torch's for odd types and shapes
        raise RunError(f"{path}: damaged: {str(error).partition(chr(10))[0]}") from None
    if CHECKSUM in about and about.pop(CHECKSUM) != checksum(tensors, about):
        raise RunError(f"{path}: damaged: its checksum does not fit; take it from a copy, or delete it and run again")
    return tensors, about


def checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """CRC-32 over names, types, shapes, numbers and metadata: against mistakes of disks, not against people."""
    total = zlib.crc32(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy(), total)
    return f"{total:08x}"


def state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each tensor once: a tied head is its word embeddings."""
    seen: set[int] = set()
    return {
        name: tensor
        for name, tensor in module.state_dict(keep_vars=True).items()
        if not (id(tensor) in seen or seen.add(id(tensor)))
    }


@torch.no_grad()
def load_state(module: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors into a module. Raises RunError for names or shapes that do not fit; `source` is named there."""
    own = state(module)
    missing, unknown = own.keys() - tensors.keys(), tensors.keys() - own.keys()
    if missing or unknown:
        raise RunError(
            f"{source}: not the weights of this model: {len(missing)} missing ({', '.join(sorted(missing)[:2])}), "
            f"{len(unknown)} unknown ({', '.join(sorted(unknown)[:2])})"
        )
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise RunError(
                f"{source}: {name} is {tuple(tensor.shape)} there and {tuple(own[name].shape)} in this model"
            )
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise RunError(f"{source}: {name} is not finite (NaN or infinite); the file is damaged")
        own[name].copy_(tensor)


def save_weights(module: nn.Module, path: Path, **metadata: str) -> None:
    write_tensors(path, state(module), {"format": "pt", **metadata})


def load_weights(module: nn.Module, path: Path) -> None:
    load_state(module, read_tensors(path)[0], path)
