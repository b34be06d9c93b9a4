"""A model: a backbone, the embedders in front of it, and the generator that learns and writes with them.

It lays rows out as the paper does (bertgen, section 3): `[CLS] image [SEP] caption`, then what is written.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from torch import Tensor, nn

from .attention import prefix_layout
from .configs import BackboneConfig, EmbedderConfig, GeneratorConfig
from .errors import DataError, PluginError
from .parts import Backbone, Embedder, Generator
from .tensors import Batch, Layout, Loss, Segment, Slots, Tail, apply, taken


class Model(nn.Module):
    """A plain module: `model(batch)` is the loss; `mmgen.evaluation.generate` writes with it.

    close   whether a last [SEP] closes the prefix (the paper writes none)
    inputs  names of the inputs it was composed of, in order; a batch may hold some of them only
    """

    def __init__(
        self, backbone: Backbone, embedders: Mapping[str, Embedder], generator: Generator, close: bool = False
    ) -> None:
        super().__init__()
        if generator.needs == "any" and backbone.masks != "any":
            raise PluginError(
                f"the generator {type(generator).__name__} needs a backbone that obeys any attention mask; "
                f"{type(backbone).__name__} is causal only"
            )
        self.backbone, self.generator, self.close = backbone, generator, close
        try:
            self.embedders = nn.ModuleDict(embedders)
        except KeyError as error:
            raise PluginError(f"an input cannot be called like that: {str(error).strip(chr(34))}") from None

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.embedders)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, batch: Batch) -> Loss:
        return self.generator(self, batch)

    def part(self, name: str) -> nn.Module:
        """What a step learns under this name: "backbone" (its head included) or an input's embedder."""
        return self.backbone if name == "backbone" else self.embedders[name]

    def prefix(self, batch: Batch) -> Slots:
        """The input X: `[CLS]`, the inputs in the batch's order, `[SEP]` between them -> P slots a row."""
        segments = [self.embedders[name](**collated) for name, collated in batch.inputs.items()]
        rows = len(batch.ids)
        parts: list[Segment] = [self._special(self.backbone.start_id, rows)]
        for number, segment in enumerate(segments):
            parts += [self._special(self.backbone.end_id, rows)] if number else []
            parts.append(segment)
        parts += [self._special(self.backbone.end_id, rows)] if self.close else []
        states = torch.cat([part.states.to(parts[0].states.dtype) for part in parts], 1)  # (B, P, E)
        mask = torch.cat([part.mask for part in parts], 1)  # (B, P)
        self._fits(mask)
        # counted over real slots, so that a padded row stands where it would stand alone
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        return Slots(states, positions, torch.zeros_like(positions), prefix_layout(mask))

    def _fits(self, mask: Tensor) -> None:
        """Raises DataError for rows that the encoder has no positions for. (The real slots are counted only when
        padding might be to blame: counting waits for the device.)"""
        most = self.backbone.max_positions - self.generator.max_tokens
        if mask.shape[1] > most and int(mask.sum(1).max()) > most:
            raise DataError(
                f"an example takes {int(mask.sum(1).max())} slots, and the encoder has {self.backbone.max_positions} "
                "positions, "
                f"{self.generator.max_tokens} of them for what is written; lower max_tokens, or use shorter inputs"
            )

    def behind(self, prefix: Slots, tail: Tail) -> Slots:
        """The slots of a tail (B, S), whose positions go on after the prefix's real slots."""
        return self.written(tail.ids, tail.offsets + prefix.layout.real.sum(1, keepdim=True), tail.layout)

    def rows(self, batch: Batch) -> tuple[Slots, Tensor]:
        """Whole rows to learn from, the prefix and then the tail, and the labels of their slots (B, L), -100 where
        nothing is predicted. Real slots stand in front: a row is padded once, at its end, and not behind every
        input."""
        prefix = self.prefix(batch)
        whole = prefix.followed_by(self.behind(prefix, batch.tail))
        real = whole.layout.real
        labels = torch.cat([torch.full_like(prefix.positions, -100), batch.tail.labels], 1)
        longest = int(real.sum(1).max())
        if longest == real.shape[1]:
            return whole, labels
        order = (~real).long().argsort(dim=1, stable=True)[:, :longest]  # (B, longest)
        return apply(whole, lambda t: taken(t, order)), taken(labels, order)

    def written(self, ids: Tensor, positions: Tensor, layout: Layout) -> Slots:
        """Tokens (B, S) at given positions, as slots."""
        return Slots(self.backbone.embed(ids), positions, torch.zeros_like(positions), layout)

    def _special(self, token: int, rows: int) -> Segment:
        ids = torch.full((rows, 1), token, device=self.device)
        return Segment(self.backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool))


def compose(
    backbone: BackboneConfig,
    inputs: Mapping[str, EmbedderConfig],
    generator: GeneratorConfig,
    texts: Sequence[str] | None = None,
    folder: Path | None = None,
    close: bool = False,
) -> Model:
    """A model from the configs of its parts; the same that a recipe does. `texts`, `folder`: see
    `BackboneConfig.build`."""
    built = backbone.build(texts=texts, folder=folder)
    embedders = {name: config.named(name).build(built) for name, config in inputs.items()}
    return Model(built, embedders, generator.build(built), close)
