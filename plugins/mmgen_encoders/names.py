"""What of published weights is an encoder's, whatever its publisher put in front of the names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from mmgen.errors import DataError

from .rows import TABLES

OLD = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}  # in files converted from TensorFlow
COUNTED = ("embeddings.position_ids", "embeddings.token_type_ids")  # plain numbers, which older files hold too
POOLERS = ("pooler.dense.weight", "pooler.dense.bias"), ("pooler.weight", "pooler.bias")  # ALBERT's is the dense layer


class Renamed(Mapping[str, Tensor]):
    """Weights under other names, to be handed on: each is its name in `weights`, looked at when it is asked for and not
    before, or a tensor that was made of several."""

    def __init__(self, weights: Mapping[str, Tensor], names: Mapping[str, str | Tensor]) -> None:
        self.weights, self.names = weights, names

    def __getitem__(self, name: str) -> Tensor:
        called = self.names[name]
        return self.weights[called] if isinstance(called, str) else called

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def encoder_weights(
    model: PreTrainedModel, weights: Mapping[str, Tensor], extra: Mapping[str, int]
) -> dict[str, Tensor]:
    """The model's own names -> tensors. `extra`: keys of `rows.TABLES` -> how many rows were added to the tables; those
    stay as they are. Raises DataError where a tensor that the model has once is there twice, with other numbers."""
    found = {}
    front = front_of(model, weights)
    for name, (own, names) in _own(model).items():
        there = [each for inner in names for each in _called(model, inner, front) if each in weights]
        if not there:
            continue
        first, *others = (weights[each] for each in there)
        for called, other in zip(there[1:], others, strict=True):
            fits = first.numel() <= own.numel()  # a stranger's may be said to be larger than any memory
            if first.shape != other.shape or (fits and not torch.equal(first, other)):
                raise DataError(
                    f"'{there[0]}' and '{called}' of these weights differ, and this encoder has one for both; take an "
                    "encoder whose head has a table of its own"
                )
        found[name] = _with_rows(name, first, own, extra)
    for each in COUNTED:  # looked at, so that nobody lists them as left over
        weights.get(front + each)
    return found


def pooler_weights(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The pooler's dense layer: "weight" and "bias" -> tensors; empty where there is none."""
    front = front_of(model, weights)
    for names in POOLERS:
        if all(front + name in weights for name in names):
            return {key: weights[front + name] for key, name in zip(("weight", "bias"), names, strict=True)}
    return {}


def front_of(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> str:
    """What stands in front of the encoder's names there: "bert.", "visual_bert.", or nothing. Of several, the one with
    most of its names; the encoder's own where none has any."""
    base: Any = model.base_model
    inside = set(base.state_dict())
    fronts: Counter[str] = Counter()
    for name in weights:
        parts = name.split(".")
        fronts.update(
            "".join(f"{each}." for each in parts[:at]) for at in range(len(parts)) if ".".join(parts[at:]) in inside
        )
    own = f"{model.base_model_prefix}."
    return max(fronts, key=lambda front: (fronts[front], front == own, -len(front)), default=own)


def _own(model: PreTrainedModel) -> dict[str, tuple[Tensor, list[str]]]:
    """The model's tensors by the first of their names, with all of them: a tied head is its word embeddings."""
    found: dict[int, tuple[Tensor, list[str]]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        found.setdefault(id(tensor), (tensor, []))[1].append(name)
    return {names[0]: (tensor, names) for tensor, names in found.values()}


def _called(model: PreTrainedModel, name: str, front: str) -> Iterator[str]:
    """What one of the model's tensors may be called there. A head stands beside the encoder."""
    inside = name.removeprefix(f"{model.base_model_prefix}.")
    outer = ".".join(front.split(".")[:-2])
    called = front + inside if inside != name else f"{outer}.{name}".lstrip(".")
    yield called
    for new, old in OLD.items():
        if called.endswith(new):
            yield called.removesuffix(new) + old


def _with_rows(name: str, there: Tensor, own: Tensor, extra: Mapping[str, int]) -> Tensor:
    """A table with the rows behind it that were added to the model's."""
    for key, (table, _) in TABLES.items():
        added = extra.get(key, 0)
        wide = there.ndim == 2 and there.shape[1:] == own.shape[1:]
        if added and name.endswith(f"{table}.weight") and wide and len(there) == len(own) - added:
            return torch.cat([there.to(own.dtype), own.detach()[-added:].cpu()])
    return there
