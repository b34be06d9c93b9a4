"""Finds an encoder's tensors among published weights, with any prefix of their names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from mmgen.errors import DataError
from mmgen.parts import has_all

OLD_NAMES = {  # in files converted from TensorFlow
    "LayerNorm.weight": "LayerNorm.gamma",
    "LayerNorm.bias": "LayerNorm.beta",
}
BUFFERS = ("embeddings.position_ids", "embeddings.token_type_ids")  # buffers that older files contain
POOLERS = ("pooler.dense.weight", "pooler.dense.bias"), ("pooler.weight", "pooler.bias")  # ALBERT's is the dense layer


class Renamed(Mapping[str, Tensor]):
    """Weights under other names: new name -> name in `weights`, read on access, or a tensor made of several."""

    def __init__(self, weights: Mapping[str, Tensor], names: Mapping[str, str | Tensor]) -> None:
        self.weights, self.names = weights, names

    def __getitem__(self, name: str) -> Tensor:
        source = self.names[name]
        return self.weights[source] if isinstance(source, str) else source

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def encoder_weights(
    model: PreTrainedModel, weights: Mapping[str, Tensor], added: Mapping[str, int]
) -> dict[str, Tensor]:
    """Names in the model -> tensors. `added`: what `extra_rows.added` says; added rows keep their values.
    Raises DataError if two different tensors belong to one tied tensor of the model, or if only a part of the masked-LM
    head is there."""
    tensors = {}
    front = front_of(model, weights)
    for name, (parameter, names) in tensors_by_name(model).items():
        sources = [source for inner in names for source in _published_names(model, inner, front) if source in weights]
        if not sources:
            continue
        first, *duplicates = (weights[source] for source in sources)
        for source, duplicate in zip(sources[1:], duplicates, strict=True):
            if not torch.equal(first, duplicate):
                raise DataError(
                    f"'{sources[0]}' and '{source}' of these weights differ, but this encoder ties both to one tensor; "
                    "use weights with a tied head"
                )
        tensors[name] = _with_rows(name, first, parameter, added)
    has_all(tensors, head_names(model), "the masked-LM head")
    for buffer in BUFFERS:  # read, so that they are not listed as left over
        weights.get(front + buffer)
    return tensors


def pooler_weights(
    model: PreTrainedModel, weights: Mapping[str, Tensor], what: str = "the pooler"
) -> dict[str, Tensor]:
    """The pooler's dense layer: "weight" and "bias" -> tensors; empty without a pooler. Raises DataError, which
    begins with `what`, for half a pooler."""
    front = front_of(model, weights)
    for names in POOLERS:
        if has_all(weights, published := [front + name for name in names], what):
            return {key: weights[name] for key, name in zip(("weight", "bias"), published, strict=True)}
    return {}


def head_names(model: PreTrainedModel) -> list[str]:
    """Names of the parameters of the masked-LM head, except those that it shares with the encoder."""
    encoder = {id(parameter) for parameter in model.base_model.parameters()}
    return [name for name, parameter in model.named_parameters() if id(parameter) not in encoder]


def front_of(model: PreTrainedModel, weights: Mapping[str, Tensor]) -> str:
    """The prefix of the encoder's names in published weights: that of its word embeddings, such as "bert.",
    "visual_bert.", or ""; without them the encoder's prefix."""
    base: Any = model.base_model
    first = next(iter(base.state_dict()))  # the word embeddings
    fronts = [name.removesuffix(first) for name in weights if f".{name}".endswith(f".{first}")]
    return min(fronts, key=len, default=f"{model.base_model_prefix}.")


def tensors_by_name(model: PreTrainedModel) -> dict[str, tuple[Tensor, list[str]]]:
    """First name of each tensor of the model -> (tensor, all its names); a tied head shares the word embeddings."""
    tensors: dict[int, tuple[Tensor, list[str]]] = {}
    for name, tensor in model.state_dict(keep_vars=True).items():
        tensors.setdefault(id(tensor), (tensor, []))[1].append(name)
    return {names[0]: (tensor, names) for tensor, names in tensors.values()}


def _published_names(model: PreTrainedModel, name: str, front: str) -> Iterator[str]:
    """Possible published names of one of the model's tensors. The head's prefix is one level above the encoder's."""
    inside = name.removeprefix(f"{model.base_model_prefix}.")
    outer = ".".join(front.split(".")[:-2])
    source = front + inside if inside != name else f"{outer}.{name}".lstrip(".")
    yield source
    for new, old in OLD_NAMES.items():
        if source.endswith(new):
            yield source.removesuffix(new) + old


def _with_rows(name: str, tensor: Tensor, parameter: Tensor, added: Mapping[str, int]) -> Tensor:
    """A published table, followed by the rows that were added to the model's table."""
    rows = next((rows for table, rows in added.items() if name.endswith(table)), 0)
    if rows and tensor.shape == (len(parameter) - rows, *parameter.shape[1:]):
        return torch.cat([tensor.to(parameter.dtype), parameter.detach()[-rows:].cpu()])
    return tensor
