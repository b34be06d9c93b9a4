"""A model: a backbone, the embedders in front of it, and the generator that learns and writes with them.

It lays rows out as the paper does (bertgen, section 3): `[CLS] image [SEP] caption`, then what is written.
"""

from __future__ import annotations

import zlib
from collections.abc import ItemsView, Mapping, Sequence, ValuesView
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from .configs import BackboneConfig, EmbedderConfig, GeneratorConfig, ObjectiveConfig, SequenceConfig
from .errors import DataError, PluginError
from .objectives import EncodedInputs, Generator, Objective, loss_problem
from .parts import Backbone, Embedder
from .registry import installed
from .sequence import (
    Part,
    Prefix,
    lay_out,
    packed,
    segment_problem,
    sharing_problem,
    terms_problem,
    types_of,
    unmet,
)
from .tensors import Batch, Layout, Loss, Segment, Slots, Tail


class Embedders(nn.ModuleDict):
    """Embedders by the names of their inputs."""

    if TYPE_CHECKING:  # torch's own says that its items are modules, and no more

        def __getitem__(self, key: str) -> Embedder: ...

        def items(self) -> ItemsView[str, Embedder]: ...

        def values(self) -> ValuesView[Embedder]: ...


class Model(nn.Module):
    """A plain module: `model(batch)` is the loss; `mmgen.evaluation.generate` writes with it.

    sequence  how the inputs are laid out
    inputs    names of the inputs it was composed of, in order; a batch may hold some of them only
    """

    def __init__(
        self,
        backbone: Backbone,
        embedders: Mapping[str, Embedder],
        generator: Generator,
        sequence: SequenceConfig | None = None,
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
            _check(name, embedder, sharing_problem(embedder, backbone))
        self.backbone, self.generator, self.sequence = backbone, generator, sequence or SequenceConfig()
        if self.sequence.target_token_type >= (backbone.types or 1):
            raise DataError(
                f"sequence.target_token_type = {self.sequence.target_token_type}, and the backbone "
                f"{types_of(backbone)}; lower it, or give the backbone more"
            )
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
        weights: dict[str, float] = {}
        slots = None
        once = _Once(self) if len(batch.targets) > 1 else self
        for name, targets in batch.targets.items():
            objective = self.objective(name)
            loss = objective(once, batch, targets)
            if problem := loss_problem(loss, objective.reader.losses):
                owner = installed().owner("generator" if name == "generator" else "objective", objective)
                raise PluginError(f"{name} ({owner}): {problem}")
            sums |= {f"{name}.{each}": loss.sums[each] for each in objective.reader.losses}
            weights |= {f"{name}.{each}": self.weights.get(name, 1.0) for each in objective.reader.losses}
            slots = loss.slots if slots is None else slots
        return Loss(sums, slots, batch.counts, weights)

    def objective(self, name: str) -> Objective:
        """What a step learns under this name: "generator", or an objective's."""
        found = self.generator if name == "generator" else self.objectives[name]
        assert isinstance(found, Objective)
        return found

    def part(self, name: str) -> nn.Module:
        """What a step learns under this name: "backbone" (its head included) or an input's embedder."""
        return self.backbone if name == "backbone" else self.embedders[name]

    def prefix(self, batch: Batch) -> Prefix:
        """The input X: `[CLS]`, the inputs in the batch's order, `[SEP]` between them -> P slots a row."""
        return self._prefix(self._parts(batch), batch, room=self.generator.max_tokens)

    def encode(self, batch: Batch) -> EncodedInputs:
        """The prefixes through the encoder: states (B, P, H), and those of every input. Nothing is written behind them,
        so they may take all positions."""
        parts = self._parts(batch)
        states = self.backbone.encode(self._prefix(parts, batch, room=0).slots).last
        apart = states.split([segment.mask.shape[1] for _, segment in parts], 1)
        return EncodedInputs(states, {name: own for (name, _), own in zip(parts, apart, strict=True) if name})

    def _parts(self, batch: Batch) -> list[Part]:
        """What the prefix is joined of; its states have one type."""
        segments = [(name, self._segment(name, collated, batch.size)) for name, collated in batch.inputs.items()]
        start = self._special(self.backbone.start_id, batch.size)
        parts: list[Part] = [("", start)] if self.sequence.open else []
        for number, segment in enumerate(segments):
            parts += [("", self._special(self.backbone.end_id, batch.size))] if number else []
            parts.append(segment)
        parts += [("", self._special(self.backbone.end_id, batch.size))] if self.sequence.close else []
        dtype = start.states.dtype  # of word embeddings: a projection's may be half of it
        return [(name, replace(part, states=part.states.to(dtype))) for name, part in parts]

    def _prefix(self, parts: Sequence[Part], batch: Batch, room: int) -> Prefix:
        """Parts in a row, and what inputs add to slots that are not their own. `room`: positions to leave for what is
        written behind them."""
        slots, free = lay_out(parts)
        self._fits(slots, free, any(part.positions is not None for _, part in parts), room)
        states, behind = slots.states, None
        for name, embedder in self.embedders.items():
            collated = batch.inputs.get(name)
            added, term = embedder.add(slots, collated, name), embedder.tail_term(slots, collated)
            _check(name, embedder, terms_problem(added, term, slots))
            states = states if added is None else states + added.to(states.dtype)
            if term is not None:
                behind = term.to(states.dtype) if behind is None else behind + term.to(states.dtype)
        return Prefix(slots if states is slots.states else replace(slots, states=states), free, behind)

    def _segment(self, name: str, collated: Mapping[str, Tensor], rows: int) -> Segment:
        """One input of B rows. Raises PluginError where its embedder gives another shape than the contract's."""
        embedder = self.embedders[name]
        segment = embedder(**collated)
        _check(name, embedder, segment_problem(segment, rows, self.backbone.input_size))
        if lacking := unmet(segment, self.backbone):
            _check(name, embedder, f"{lacking}; give the backbone more, or use another input")
        return segment

    def _fits(self, slots: Slots, free: Tensor, own: bool, room: int) -> None:
        """Raises DataError for rows that the encoder has no positions for. (Positions are looked at only where there
        are that many slots, or where an input has its `own`: looking waits for the device.)"""
        most = self.backbone.max_positions - room
        if (own or slots.positions.shape[1] > most) and int(free.max()) > most:
            written = f", {room} of them for what is written; lower max_tokens, or use" if room else "; use"
            raise DataError(
                f"an example takes {int(free.max())} positions, and the encoder has {self.backbone.max_positions}"
                f"{written} shorter inputs"
            )

    def behind(self, prefix: Prefix, tail: Tail) -> Slots:
        """The slots of a tail (B, S), whose positions go on after the prefix's."""
        return self.written(prefix, tail.ids, tail.offsets, tail.layout)

    def rows(self, batch: Batch, tail: Tail) -> tuple[Slots, Tensor]:
        """Whole rows to learn from, the prefix and then the tail, and the labels of their slots (B, L), -100 where
        nothing is predicted. Real slots stand in front: a row is padded once, at its end, and not behind every
        input."""
        prefix = self.prefix(batch)
        whole = prefix.slots.followed_by(self.behind(prefix, tail))
        labels = torch.cat([torch.full_like(prefix.slots.positions, -100), tail.labels], 1)
        return packed(whole, labels)

    def written(self, prefix: Prefix, ids: Tensor, offsets: Tensor, layout: Layout) -> Slots:
        """Tokens (B, S) behind a prefix, as slots. Their positions are counted from the first that is free."""
        states = self.backbone.embed(ids)
        if prefix.term is not None:
            states = states + prefix.term.unsqueeze(1)
        return Slots(states, prefix.free + offsets, torch.full_like(ids, self.sequence.target_token_type), layout)

    def _special(self, token: int, rows: int) -> Segment:
        ids = torch.full((rows, 1), token, device=self.device)
        return Segment(self.backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool))


@dataclass(frozen=True)
class Objectives:
    """What a model learns beside writing, by name. `labels`: see `ObjectiveConfig.build`."""

    configs: Mapping[str, ObjectiveConfig]
    labels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def build(self, backbone: Backbone, input_labels: Mapping[str, tuple[str, ...]]) -> dict[str, Objective]:
        """Each head draws its first weights for itself, so that one more changes no other. So does the pooler, where
        one of them reads it. `input_labels`: what inputs have to choose from (`parts.Embedder.labels`)."""
        found = {}
        if any(config.pools for config in self.configs.values()):
            with torch.random.fork_rng([]):
                torch.manual_seed(zlib.crc32(f"{torch.initial_seed()}/pooler".encode()))
                backbone.add_pooler()
        for name, config in self.configs.items():
            with torch.random.fork_rng([]):
                torch.manual_seed(zlib.crc32(f"{torch.initial_seed()}/objectives/{name}".encode()))
                try:
                    found[name] = config.build(backbone, {**self.labels, **input_labels})
                except DataError as error:
                    error.about = ("objectives", name)
                    raise
        return found


def compose(
    backbone: BackboneConfig,
    inputs: Mapping[str, EmbedderConfig],
    generator: GeneratorConfig,
    texts: Sequence[str] | None = None,
    folder: Path | None = None,
    sequence: SequenceConfig | None = None,
    objectives: Objectives | None = None,
) -> Model:
    """A model from the configs of its parts; the same that a recipe does. `texts`, `folder`: see
    `BackboneConfig.build`."""
    built = backbone.build(texts=texts, folder=folder)
    embedders = {name: config.named(name).build(built) for name, config in inputs.items()}
    input_labels = {f"{name}.{label}": each for name, own in embedders.items() for label, each in own.labels().items()}
    learnt = objectives.build(built, input_labels) if objectives else None
    made = Model(built, embedders, generator.build(built), sequence, learnt)
    made.weights = {name: c.weight for name, c in (objectives.configs if objectives else {}).items() if c.weight != 1}
    return made


class _Once:
    """A model as the objectives of one batch see it: the inputs are encoded once for all of them."""

    def __init__(self, model: Model) -> None:
        self.backbone, self.embedders = model.backbone, model.embedders
        self.prefix, self.behind, self.written, self.rows = model.prefix, model.behind, model.written, model.rows
        self.objective = model.objective
        self._encode = model.encode
        self._known: tuple[Batch, EncodedInputs] | None = None

    def encode(self, batch: Batch) -> EncodedInputs:
        if self._known is None or self._known[0] is not batch:
            self._known = batch, self._encode(batch)
        return self._known[1]


def _check(name: str, embedder: Embedder, problem: str) -> None:
    """Raises PluginError where there is a problem with what an embedder gives."""
    if problem:
        raise PluginError(f"input '{name}' ({installed().owner('embedder', embedder)}): {problem}")
