"""Fake backbones without `mmgen.attention.visible`, one for each other kind of `BackboneConfig.mixes`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar, Literal

import torch
from torch import Tensor

from ..attention import Cache
from ..tensors import Slots
from .tiny import Tiny, TinyBackbone


class TinyRow(Tiny):
    """The tiny backbone whose slots all see their whole row."""

    type: Literal["tiny_row"] = "tiny_row"  # type: ignore[assignment]
    mixes = "row"
    sees: ClassVar[str] = "the whole row"

    def build(self, texts: Iterable[str] | None = None, folder: Path | None = None) -> TinyBackbone:
        return RowBackbone(self, super().build(texts, folder).tokenizer.words)


class TinyLeft(Tiny):
    """The tiny backbone that reads from left to right."""

    type: Literal["tiny_left"] = "tiny_left"  # type: ignore[assignment]
    mixes = "row"
    sees: ClassVar[str] = "every earlier slot"

    def build(self, texts: Iterable[str] | None = None, folder: Path | None = None) -> TinyBackbone:
        return LeftBackbone(self, super().build(texts, folder).tokenizer.words)


class TinyAlone(Tiny):
    """The tiny backbone whose slots see only themselves."""

    type: Literal["tiny_alone"] = "tiny_alone"  # type: ignore[assignment]
    mixes = "nothing"
    sees: ClassVar[str] = "only themselves"

    def build(self, texts: Iterable[str] | None = None, folder: Path | None = None) -> TinyBackbone:
        return AloneBackbone(self, super().build(texts, folder).tokenizer.words)


class RowBackbone(TinyBackbone):
    """See `TinyRow`."""

    caches = False

    def seen(self, slots: Slots, cache: Cache | None) -> Tensor:
        real = slots.layout.real
        return real.unsqueeze(1) | torch.eye(real.shape[1], dtype=torch.bool, device=real.device)


class LeftBackbone(RowBackbone):
    """See `TinyLeft`."""

    masks = "causal"

    def seen(self, slots: Slots, cache: Cache | None) -> Tensor:
        return super().seen(slots, cache).tril()


class AloneBackbone(RowBackbone):
    """See `TinyAlone`."""

    def seen(self, slots: Slots, cache: Cache | None) -> Tensor:
        eye = torch.eye(slots.states.shape[1], dtype=torch.bool, device=slots.states.device)
        return eye.expand(len(slots.states), -1, -1)


def backbones(kind: str, needs: str) -> tuple[TinyRow | TinyLeft | TinyAlone, ...]:
    """The fake backbones of a kind of `mixes` with which a generator that `needs` this must work."""
    if kind == "row":
        return (TinyRow(),) if needs == "any" else (TinyLeft(),)
    return (TinyAlone(),)
