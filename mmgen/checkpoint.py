"""Files that survive a kill: weights and training state as safetensors, everything else as JSON, each written atomically.

No pickle is written or read. A file appears under its name whole or not at all.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn

from .errors import RunError


def write_atomically(path: Path, write: Callable[[Path], None]) -> None:
    """`write` fills a temporary file beside `path`, which then takes its name. Raises RunError when the disk refuses."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        write(partial)
        with partial.open("rb+") as file:
            os.fsync(file.fileno())
        partial.replace(path)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path}: cannot be written: {error}; what was there before is untouched") from None
    finally:
        partial.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def write_json(path: Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False) + "\n")


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RunError(f"{path}: missing; is this a run folder?") from None
    except (OSError, ValueError) as error:
        raise RunError(f"{path}: damaged: {error}") from None


def write_tensors(path: Path, tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> None:
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    write_atomically(path, lambda partial: save_file(whole, partial, dict(metadata or {})))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        with safe_open(path, "pt") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, dict(file.metadata() or {})  # noqa: SIM118
    except FileNotFoundError:
        raise RunError(f"{path}: missing; has this step been run?") from None
    except (OSError, SafetensorError) as error:
        raise RunError(f"{path}: damaged: {error}") from None


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
            raise RunError(f"{source}: {name} is {tuple(tensor.shape)} there and {tuple(own[name].shape)} in this model")
        own[name].copy_(tensor)


def save_weights(module: nn.Module, path: Path, **metadata: str) -> None:
    write_tensors(path, state(module), {"format": "pt", **metadata})


def load_weights(module: nn.Module, path: Path) -> None:
    load_state(module, read_tensors(path)[0], path)
