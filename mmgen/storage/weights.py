"""Weights and training state as safetensors, with a checksum. No pickle is written or read."""

from __future__ import annotations

import json
import shutil
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from ..errors import RunError, regular
from ..files import _closed, write_atomically

ABOUT = "mmgen"  # the one key of a file's metadata: safetensors writes several in an order drawn anew every time
CHECKSUM = "crc32"  # its name among what the metadata say
MEND = (
    "another recipe or another version of mmgen has written it: go on with those (a run's environment.json says which "
    "version), or learn again with `mmgen run --fresh`"
)


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and what is said about them. Equal ones make equal files, byte by byte. A checksum over everything
    tells a disk's mistake from another result."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = dict(metadata or {})
    about[CHECKSUM] = checksum(whole, about)
    write_atomically(path, lambda partial: _save(whole, partial, {ABOUT: json.dumps(about, sort_keys=True)}))


def _save(tensors: Mapping[str, Tensor], partial: Path, metadata: dict[str, str]) -> None:
    """safetensors fills a hidden file of its own first. It gets a folder for it that `clear_partials` knows, so that a
    kill leaves nothing for good."""
    folder = partial.with_name(f"{partial.name.removesuffix('.partial')}.folder.partial")
    folder.mkdir(exist_ok=True)
    try:
        save_file(dict(tensors), folder / partial.name, metadata)
        (folder / partial.name).replace(partial)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors and what `write_tensors` wrote about them, nothing for a file that others wrote. Raises RunError for a
    file that is damaged, be it by one bit."""
    try:
        regular(path).open("rb").close()  # safetensors calls missing whatever it cannot open
        with safe_open(path, "pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            about = dict(json.loads((file.metadata() or {}).get(ABOUT, "{}")))
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
        RecursionError,
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
        total = zlib.crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"


def state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each tensor once: a tied head is its word embeddings."""
    found: dict[str, Tensor] = {}
    seen: set[int] = set()
    for name, tensor in module.state_dict(keep_vars=True).items():
        if id(tensor) not in seen:
            seen.add(id(tensor))
            found[name] = tensor
    return found


@torch.no_grad()
def load_state(module: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors into a module. Raises RunError for names or shapes that do not fit; `source` is named there."""
    own = state(module)
    missing, unknown = own.keys() - tensors.keys(), tensors.keys() - own.keys()
    if missing or unknown:
        raise RunError(
            f"{source}: not the weights of this model: {len(missing)} missing ({', '.join(sorted(missing)[:2])}), "
            f"{len(unknown)} unknown ({', '.join(sorted(unknown)[:2])}); {MEND}"
        )
    for name, tensor in tensors.items():
        if tensor.shape != own[name].shape:
            raise RunError(
                f"{source}: {name} is {tuple(tensor.shape)} there and {tuple(own[name].shape)} in this model; {MEND}"
            )
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise RunError(f"{source}: {name} is not finite (NaN or infinite); the file is damaged")
        own[name].copy_(tensor)


def save_weights(module: nn.Module, path: Path, step: str | None = None) -> None:
    """Write a module's weights; `step`: the step of a run that they are of."""
    write_tensors(path, state(module), {"format": "pt", **({"step": step} if step is not None else {})})


def load_weights(module: nn.Module, path: Path) -> None:
    load_state(module, read_tensors(path)[0], path)
