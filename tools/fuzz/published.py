"""Fuzzing of weights that a step starts from: safetensors and torch files, and the index of several files."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from . import mutations
from .harness import Surface

NAMES = ("bert.embeddings.words.weight", "bert.layer.0.bias", "cls.bias")
INDEX = "model.safetensors.index.json"
EVIL = [
    b"cos\nsystem\n",
    b"cbuiltins\nexec\n",
    b"c__builtin__\neval\n",
    b"ctorch._utils\n_rebuild_tensor_v2\n",
    b"R.",
    b"(",
]


def surfaces() -> list[Surface]:
    return [Surface("published", _prepare, _spoil, _read, _check, named="a.bin|old.pt|model|published")]


def _tensors() -> dict[str, Any]:
    import torch

    torch.manual_seed(0)
    return dict(zip(NAMES, (torch.randn(6, 4), torch.randn(4).half(), torch.randn(3)), strict=True))


def _prepare(folder: Path) -> Any:
    import torch
    from safetensors.torch import save_file

    tensors = _tensors()
    torch.save(tensors, folder / "a.bin")
    torch.save({"state_dict": tensors, "epoch": 3}, folder / "old.pt", _use_new_zipfile_serialization=False)
    for number, name in enumerate(NAMES):
        save_file({name: tensors[name]}, folder / f"model-{number}.safetensors")
    shards = {name: f"model-{number}.safetensors" for number, name in enumerate(NAMES)}
    (folder / INDEX).write_text(json.dumps({"metadata": {"total_size": 116}, "weight_map": shards}))
    return tensors


def _spoil(draw: Random, folder: Path, _) -> Path:
    path = folder / draw.choice(("a.bin", "a.bin", "old.pt", "old.pt", INDEX, "model-1.safetensors"))
    if path.suffix == ".json" and draw.random() < 0.7:
        mutations.write(path, mutations.json_(draw, json.loads(path.read_text())))
    else:
        path.write_bytes(mutations.bytes_(draw, path.read_bytes(), EVIL))
    return path


def _read(path: Path, _) -> Any:
    """The tensors that a step's parts would get; for an index, one of its files is damaged."""
    from mmgen.storage.published_weights import read_published

    return read_published(str(path if path.suffix in (".bin", ".pt") else path.with_name(INDEX)))


def _check(path: Path, content: Any, tensors: dict[str, Any]) -> None:
    """Files have checksums (a.bin), or are undamaged (all but one beside an index)."""
    import torch

    for name, tensor in content.items():
        assert isinstance(name, str) and isinstance(tensor, torch.Tensor) and tensor.layout == torch.strided
    if path.suffix == ".bin":
        assert content.keys() == tensors.keys(), f"other names: {[*content]}"
    for name in NAMES if path.suffix == ".bin" else ():
        assert torch.equal(content[name], tensors[name]), f"{name} is another"
