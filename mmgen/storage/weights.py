"""Weights and training state as safetensors, with a checksum: written, read, loaded into modules. No pickle."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..errors import RunError
from ..files import open_tensors, write_atomically

ABOUT = "mmgen"  # the only key of the metadata: safetensors writes several keys in random order
CHECKSUM = "crc32"  # key of the checksum in the metadata


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and metadata. Equal tensors and metadata give byte-identical files. A checksum over everything
    detects damage on the disk."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = dict(metadata or {})
    about[CHECKSUM] = checksum(on_cpu, about)
    write_atomically(path, lambda partial: save_file(on_cpu, partial, {ABOUT: json.dumps(about, sort_keys=True)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors, and the metadata from `write_tensors` (empty for files of other programs). Raises RunError for a damaged
    file, even if only one bit has changed."""
    with open_tensors(path, "has this step been run?") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        saved = (file.metadata() or {}).get(ABOUT)
        about = json.loads(saved or "{}")
        if not isinstance(about, dict):
            raise ValueError("the metadata is not a JSON object")
    if saved is not None and about.pop(CHECKSUM, None) != checksum(tensors, about):
        raise RunError(f"{path}: damaged: checksum mismatch; restore the file from a copy, or delete it and run again")
    return tensors, about


def checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """CRC-32 over names, dtypes, shapes, values and metadata; detects disk errors, not manipulation."""
    total = zlib.crc32(json.dumps(sorted(metadata.items())).encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.contiguous().reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"


def state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each tensor once, such as a head tied to the word embeddings."""
    tensors = module.state_dict(keep_vars=True)
    first = {id(tensor): name for name, tensor in reversed(tensors.items())}
    return {name: tensor for name, tensor in tensors.items() if first[id(tensor)] == name}


@torch.no_grad()
def load_state(module: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors into a module. Raises RunError, with `source`, for names, shapes or values that do not fit."""
    current = state(module)
    ours, theirs = ({name: tuple(tensor.shape) for name, tensor in table.items()} for table in (current, tensors))
    if differs := sorted(name for name in {**ours, **theirs} if ours.get(name) != theirs.get(name)):
        name = differs[0]
        raise RunError(
            f"{source}: not the weights of this model: {len(differs)} tensors differ, such as {name}: shape "
            f"{theirs.get(name, 'none')} in the file, {ours.get(name, 'none')} in the model; use the version of mmgen "
            "in the run's environment.json, or train again with `mmgen run --fresh`"
        )
    for name, tensor in tensors.items():
        # a sum is faster than a look at every number, and finite only if all numbers are
        if tensor.is_floating_point() and not tensor.sum().isfinite() and not tensor.isfinite().all():
            raise RunError(f"{source}: {name} is not finite (NaN or infinite); the file is damaged")
        current[name].copy_(tensor)


def save_weights(module: nn.Module, path: Path, step: str = "") -> None:
    """Write a module's weights; `step`: the step of the run to which they belong."""
    write_tensors(path, state(module), {"format": "pt", "step": step})
