"""Weights and training state as safetensors: written, read, loaded into modules. No pickle."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor, nn

from ..errors import RunError
from ..files import open_tensors, write_atomically

ABOUT = "mmgen"  # the only key of the metadata: safetensors writes several keys in random order


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    """Write tensors and metadata. Equal tensors and metadata give byte-identical files."""
    on_cpu = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    about = {ABOUT: json.dumps(metadata or {}, sort_keys=True)}
    write_atomically(path, lambda partial: save_file(on_cpu, partial, about))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Tensors, and the metadata from `write_tensors` (empty for files of other programs). Raises RunError for a damaged
    file."""
    with open_tensors(path, "has this step been run?") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        about = json.loads((file.metadata() or {}).get(ABOUT, "{}"))
        if not isinstance(about, dict):
            raise ValueError("the metadata is not a JSON object")
    return tensors, about


def state(module: nn.Module) -> dict[str, Tensor]:
    """Parameters and buffers by name, each tensor once, such as a head tied to the word embeddings."""
    tensors = module.state_dict(keep_vars=True)
    first = {id(tensor): name for name, tensor in reversed(tensors.items())}
    return {name: tensor for name, tensor in tensors.items() if first[id(tensor)] == name}


@torch.no_grad()
def load_state(module: nn.Module, tensors: Mapping[str, Tensor], source: str | Path) -> None:
    """Copy tensors into a module. Raises RunError, with `source`, for names or shapes that do not fit."""
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
        current[name].copy_(tensor)


def save_weights(module: nn.Module, path: Path, step: str = "") -> None:
    """Write a module's weights; `step`: the step of the run to which they belong."""
    write_tensors(path, state(module), {"format": "pt", "step": step})
