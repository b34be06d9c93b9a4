"""A model: a backbone, the embedders in front of it, and the generator that learns and writes with them.

It lays rows out as the paper does (bertgen, section 3): `[CLS] image [SEP] caption`, then what is written.
"""

from __future__ import annotations

import zlib
from collections.abc import ItemsView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from .attention import prefix_layout
from .configs import BackboneConfig, EmbedderConfig, GeneratorConfig, ObjectiveConfig
from .errors import DataError, PluginError
from .objectives import EncodedInputs, Generator, Objective, has_losses
from .parts import Backbone, Embedder
from .registry import installed
from .tensors import Batch, Layout, Loss, Segment, Slots, Tail, apply, taken


class Embedders(nn.ModuleDict):
    """Embedders by the names of their inputs."""

    if TYPE_CHECKING:  # torch's own says that its items are modules, and no more

        def __getitem__(self, key: str) -> Embedder: ...

        def items(self) -> ItemsView[str, Embedder]: ...

        def values(self) -> ValuesView[Embedder]: ...


class Model(nn.Module):
    """A plain module: `model(batch)` is the loss; `mmgen.evaluation.generate` writes with it.

    close   whether a last [SEP] closes the prefix (the paper writes none)
    inputs  names of the inputs it was composed of, in order; a batch may hold some of them only
    """

    def __init__(
        self,
        backbone: Backbone,
        embedders: Mapping[str, Embedder],
        generator: Generator,
        close: bool = False,
        objectives: Mapping[str, Objective] | None = None,
    ) -> None:
        super().__init__()
        if generator.needs == "any" and backbone.masks != "any":
            raise PluginError(
                f"the generator {type(generator).__name__} needs a backbone that obeys any attention mask; "
                f"{type(backbone).__name__} is causal only"
            )
        if generator.max_tokens >= backbone.max_positions:
            raise DataError(
                f"generator.max_tokens is {generator.max_tokens}, and the encoder has {backbone.max_positions} "
                "positions for inputs and what is written together; lower it"
            )
        for name, embedder in embedders.items():
            if not set(embedder.parameters()).isdisjoint(backbone.parameters()):
                raise _wrong(name, embedder, "keeps the backbone as its own; write self._backbone = [backbone], a list")
        self.backbone, self.generator, self.close = backbone, generator, close
        try:
            self.embedders = Embedders(embedders)
        except KeyError as error:
            raise PluginError(f"an input cannot be called like that: {str(error).strip(chr(34))}") from None
        self.objectives = nn.ModuleDict(objectives or {})
        self.weights: dict[str, float] = {}  # objective -> what its losses are multiplied with, where it is not 1

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.embedders)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    def forward(self, batch: Batch) -> Loss:
        sums: dict[str, Tensor] = {}
        slots = None
        once = _Once(self) if len(batch.targets) > 1 else self
        for name, targets in batch.targets.items():
            objective = self.objective(name)
            loss = objective(once, batch, targets)
            if not has_losses(loss, objective.reader.losses):
                owner = installed().owner("generator" if name == "generator" else "objective", objective)
                wanted = ", ".join(f"'{each}'" for each in objective.reader.losses)
                raise PluginError(
                    f"{name} ({owner}): forward gives {_shown(loss)}, not a Loss of a sum () for {wanted}"
                )
            sums |= {f"{name}.{each}": loss.sums[each] for each in objective.reader.losses}
            slots = loss.slots if slots is None else slots
        weights = {key: self.weights[key.partition(".")[0]] for key in sums if key.partition(".")[0] in self.weights}
        return Loss(sums, slots, batch.counts, weights)

    def objective(self, name: str) -> Objective:
        """What a step learns under this name: "generator", or an objective's."""
        found = self.generator if name == "generator" else self.objectives[name]
        assert isinstance(found, Objective)
        return found

    def part(self, name: str) -> nn.Module:
        """What a step learns under this name: "backbone" (its head included) or an input's embedder."""
        return self.backbone if name == "backbone" else self.embedders[name]

    def prefix(self, batch: Batch) -> Slots:
        """The input X: `[CLS]`, the inputs in the batch's order, `[SEP]` between them -> P slots a row."""
        return self._joined([segment for _, segment in self._segments(batch)])

    def encode(self, batch: Batch) -> EncodedInputs:
        """The prefixes through the encoder: states (B, P, H), and those of every input."""
        segments = self._segments(batch)
        states = self.backbone.encode(self._joined([segment for _, segment in segments])).last
        apart = states.split([segment.mask.shape[1] for _, segment in segments], 1)
        return EncodedInputs(states, {name: own for (name, _), own in zip(segments, apart, strict=True) if name})

    def _segments(self, batch: Batch) -> list[tuple[str, Segment]]:
        """What the prefix is joined of, with the names of inputs; special slots have an empty one."""
        rows = batch.size
        found = [("", self._special(self.backbone.start_id, rows))]
        for number, (name, collated) in enumerate(batch.inputs.items()):
            found += [("", self._special(self.backbone.end_id, rows))] if number else []
            found.append((name, self._segment(name, collated, rows)))
        return found + ([("", self._special(self.backbone.end_id, rows))] if self.close else [])

    def _joined(self, parts: Sequence[Segment]) -> Slots:
        states = torch.cat([part.states.to(parts[0].states.dtype) for part in parts], 1)  # (B, P, E)
        mask = torch.cat([part.mask for part in parts], 1)  # (B, P)
        self._fits(mask)
        # counted over real slots, so that a padded row stands where it would stand alone
        positions = (mask.cumsum(1) - 1).clamp(min=0)
        return Slots(states, positions, torch.zeros_like(positions), prefix_layout(mask))

    def _segment(self, name: str, collated: Mapping[str, Tensor], rows: int) -> Segment:
        """One input of B rows. Raises PluginError where its embedder gives another shape than the contract's."""
        embedder, width = self.embedders[name], self.backbone.input_size
        segment = embedder(**collated)
        if not isinstance(segment, Segment):
            raise _wrong(name, embedder, f"forward gives {_shown(segment)}, not a mmgen.tensors.Segment")
        shape = tuple(segment.states.shape)
        if len(shape) != 3 or shape[0] != rows:
            raise _wrong(name, embedder, f"states are {shape}, not (B, N, E) with B = {rows}")
        if shape[2] != width:
            raise _wrong(name, embedder, f"states have width {shape[2]}; the backbone reads {width}, its input_size")
        if segment.mask.shape != shape[:2] or segment.mask.dtype != torch.bool:
            mask = f"{segment.mask.dtype} {tuple(segment.mask.shape)}"
            raise _wrong(name, embedder, f"mask is {mask}, not bool {shape[:2]}")
        return segment

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

    def rows(self, batch: Batch, tail: Tail) -> tuple[Slots, Tensor]:
        """Whole rows to learn from, the prefix and then the tail, and the labels of their slots (B, L), -100 where
        nothing is predicted. Real slots stand in front: a row is padded once, at its end, and not behind every
        input."""
        prefix = self.prefix(batch)
        whole = prefix.followed_by(self.behind(prefix, tail))
        real = whole.layout.real
        labels = torch.cat([torch.full_like(prefix.positions, -100), tail.labels], 1)
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


@dataclass(frozen=True)
class Objectives:
    """What a model learns beside writing, by name. `labels`: see `ObjectiveConfig.build`."""

    configs: Mapping[str, ObjectiveConfig]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def build(self, backbone: Backbone) -> dict[str, Objective]:
        """Each head draws its first weights for itself, so that one more changes no other."""
        found = {}
        for name, config in self.configs.items():
            with torch.random.fork_rng([]):
                torch.manual_seed(zlib.crc32(f"{torch.initial_seed()}/objectives/{name}".encode()))
                found[name] = config.build(backbone, self.labels)
        return found


def compose(
    backbone: BackboneConfig,
    inputs: Mapping[str, EmbedderConfig],
    generator: GeneratorConfig,
    texts: Sequence[str] | None = None,
    folder: Path | None = None,
    close: bool = False,
    objectives: Objectives | None = None,
) -> Model:
    """A model from the configs of its parts; the same that a recipe does. `texts`, `folder`: see
    `BackboneConfig.build`."""
    built = backbone.build(texts=texts, folder=folder)
    embedders = {name: config.named(name).build(built) for name, config in inputs.items()}
    made = Model(built, embedders, generator.build(built), close, objectives.build(built) if objectives else None)
    made.weights = {name: c.weight for name, c in (objectives.configs if objectives else {}).items() if c.weight != 1}
    return made


class _Once:
    """A model as the objectives of one batch see it: the inputs are encoded once for all of them."""

    def __init__(self, model: Model) -> None:
        self.backbone, self.embedders = model.backbone, model.embedders
        self.prefix, self.behind, self.written, self.rows = model.prefix, model.behind, model.written, model.rows
        self._encode = model.encode
        self._known: tuple[Batch, EncodedInputs] | None = None

    def encode(self, batch: Batch) -> EncodedInputs:
        if self._known is None or self._known[0] is not batch:
            self._known = batch, self._encode(batch)
        return self._known[1]


def _wrong(name: str, embedder: nn.Module, what: str) -> PluginError:
    return PluginError(f"input '{name}' ({installed().owner('embedder', embedder)}): {what}")


def _shown(value: object) -> str:
    """What a part gave in place of what it should give, in a few words."""
    if isinstance(value, Loss):
        inside = value.sums
        return (
            f"a Loss of {', '.join(f'{name!r}: {_shown(each)}' for name, each in inside.items())}"
            if isinstance(inside, Mapping)
            else f"a Loss of {_shown(inside)}"
        )
    if isinstance(value, Tensor):
        return f"a {value.dtype} tensor {tuple(value.shape)}".replace("torch.", "")
    return f"{value!r:.60}"
