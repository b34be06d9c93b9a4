"""The model: backbone, embedders, generator and objectives; lays out, embeds and encodes rows; `compose` builds it.

Rows are laid out as in the paper (bertgen, section 3): `[CLS] image [SEP] caption`, then the text.
"""

from __future__ import annotations

import copy
import zlib
from collections.abc import ItemsView, Iterable, Iterator, Mapping, Sequence, ValuesView
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from .configs import BackboneConfig, EmbedderConfig, GeneratorConfig, ObjectiveConfig, SequenceConfig
from .decoding import Decoding, DecodingConfig
from .errors import DataError, PluginError
from .objectives import EncodedInputs, Generator, Objective
from .parts import Backbone, Embedder
from .prompts import prompts_in
from .sequence import Part, Prefix, lay_out, packed, types_of, unmet
from .tensors import Batch, Layout, Loss, Segment, Slots, Tail

EMBEDDERS = "embedders."  # before the input's name, in the names of its parameters


class Embedders(nn.ModuleDict):
    """Embedders by the names of their inputs."""

    if TYPE_CHECKING:  # torch declares the items as plain modules

        def __getitem__(self, key: str) -> Embedder: ...

        def items(self) -> ItemsView[str, Embedder]: ...

        def values(self) -> ValuesView[Embedder]: ...


class Model(nn.Module):
    """A plain module: `model(batch)` is the loss; `mmgen.evaluation.answers.generate` writes texts with it.

    generator  writes texts; a model whose steps only predict may have none (`has_generator`)
    sequence   the layout of the inputs
    inputs     names of the inputs, in order; a batch may have only some of them
    frozen     names of the parameters that a part froze when it was built; no step trains them
    """

    generator: Generator

    def __init__(
        self,
        backbone: Backbone,
        embedders: Mapping[str, Embedder],
        generator: Generator | None,
        sequence: SequenceConfig | None = None,
        objectives: Mapping[str, Objective] | None = None,
    ) -> None:
        super().__init__()
        if generator is not None and generator.max_tokens >= backbone.max_positions:
            raise DataError(
                f"generator.max_tokens is {generator.max_tokens}, but the encoder has only {backbone.max_positions} "
                "positions for inputs and text together; lower max_tokens"
            )
        _set_gpu_kernels()
        self.backbone, self.sequence = backbone, sequence or SequenceConfig()
        if generator is not None:
            self.generator = generator
        if self.sequence.target_token_type >= (backbone.types or 1):
            raise DataError(
                f"sequence.target_token_type = {self.sequence.target_token_type}, but the backbone "
                f"{types_of(backbone)}; lower target_token_type, or give the backbone more token types"
            )
        try:
            self.embedders = Embedders(embedders)
        except KeyError as error:
            raise PluginError(f"invalid name of an input: {str(error).strip(chr(34))}") from None
        self.objectives = nn.ModuleDict(objectives or {})
        self.decoding: DecodingConfig = Decoding()  # how it writes unless something else is asked for
        self.initialised: set[str] = set()  # objectives whose `init_from_model` `mmgen.fit` has called
        self.weights: dict[str, float] = {}  # objective -> factor of its losses; by default 1
        self.over_batch: frozenset[str] = frozenset()  # objectives whose losses compare the rows of a batch
        self.frozen = frozenset(name for name, parameter in self.named_parameters() if not parameter.requires_grad)
        self.fields: Mapping[str, tuple[str, ...]] = {}  # input -> the fields of an example that it reads
        self.vocabularies: Mapping[str, tuple[str, ...]] = {}  # label -> the classes that heads were built with

    @property
    def has_generator(self) -> bool:
        return "generator" in self._modules

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.embedders)

    @property
    def device(self) -> torch.device:
        return next(self.parameters()).device

    @property
    def dtype(self) -> torch.dtype:
        """The dtype of the weights; mixed precision keeps them in float32."""
        return next(self.parameters()).dtype

    def forward(self, batch: Batch) -> Loss:
        """The losses of a batch."""
        sums: dict[str, Tensor] = {}
        weights: dict[str, float] = {}
        once: Any = _EncodeOnce(self)
        for name, targets in batch.targets.items():
            objective = self.objective(name)
            loss = objective(once, batch, targets)
            if loss.sums.keys() != {*objective.reader.losses}:
                wrong = f"gives the losses {sorted(loss.sums)}, but its reader counts {sorted(objective.reader.losses)}"
                raise PluginError(f"{name}: {type(objective).__name__} {wrong}")
            for part in objective.reader.losses:
                sums[f"{name}.{part}"], weights[f"{name}.{part}"] = loss.sums[part], self.weights.get(name, 1.0)
        return Loss(sums, batch.counts, weights)

    def objective(self, name: str) -> Objective:
        """The objective with this name; "generator" is the generator."""
        selected = self.generator if name == "generator" else self.objectives[name]
        assert isinstance(selected, Objective)
        return selected

    def frozen_copy(self) -> Model:
        """See `objectives.Sequencer.frozen_copy`."""
        copied = copy.deepcopy(self, {id(self.objectives): nn.ModuleDict()})  # objectives may hold copies themselves
        return copied.requires_grad_(False).eval()

    def part(self, name: str) -> nn.Module:
        """The part with this name: "backbone" (with its head) or the embedder of an input."""
        return self.backbone if name == "backbone" else self.embedders[name]

    def prefix(self, batch: Batch) -> Prefix:
        """The input X: `[CLS]`, the inputs in the batch's order, `[SEP]` between them -> P slots per row."""
        prompts = prompts_in(batch)
        room = (self.generator.max_tokens if self.has_generator else 0) + (0 if prompts is None else prompts.shape[-1])
        return self._lay_out_prefix(self._prefix_segments(batch), batch, room)

    def encode(self, batch: Batch) -> EncodedInputs:
        """Encode the prefixes: states (B, P, H), and the states of each input. No text follows, so the inputs may use
        all positions."""
        parts = self._prefix_segments(batch)
        states = self.backbone.encode(self._lay_out_prefix(parts, batch, room=0).slots).last
        segments = states.split([segment.mask.shape[1] for _, segment in parts], 1)
        return EncodedInputs(states, {name: part for (name, _), part in zip(parts, segments, strict=True) if name})

    def _prefix_segments(self, batch: Batch) -> list[Part]:
        """The segments of the prefix in order: the start token, the inputs with an end token between them, and an end
        token, as `[sequence]` says. Their states have one dtype."""
        segments = [(name, self._embed_input(name, collated)) for name, collated in batch.inputs.items()]
        start = self._special_token(self.backbone.start_id, batch.size)
        parts: list[Part] = [("", start)] if self.sequence.open else []
        for number, segment in enumerate(segments):
            parts += [("", self._special_token(self.backbone.end_id, batch.size))] if number else []
            parts.append(segment)
        parts += [("", self._special_token(self.backbone.end_id, batch.size))] if self.sequence.close else []
        dtype = start.states.dtype  # the dtype of word embeddings; a projection may have half precision
        return [(name, replace(part, states=part.states.to(dtype))) for name, part in parts]

    def _lay_out_prefix(self, parts: Sequence[Part], batch: Batch, room: int) -> Prefix:
        """Lay out parts in rows, and add the terms of inputs to all slots. `room`: positions to reserve for the
        text."""
        slots, free = lay_out(parts)
        self._check_positions(slots, free, any(part.positions is not None for _, part in parts), room)
        states, behind = slots.states, None
        for name, embedder in self.embedders.items():
            collated = batch.inputs.get(name)
            added, term = embedder.add(slots, collated, name), embedder.tail_term(slots, collated)
            states = states if added is None else states + added.to(states.dtype)
            if term is not None:
                behind = term.to(states.dtype) if behind is None else behind + term.to(states.dtype)
        return Prefix(slots if states is slots.states else replace(slots, states=states), free, behind)

    def _embed_input(self, name: str, collated: Mapping[str, Tensor]) -> Segment:
        """The segment of one input. Raises DataError for types or positions that the backbone does not have."""
        embedder = self.embedders[name]
        in_dtype = {
            key: tensor.to(self.dtype) if tensor.is_floating_point() else tensor for key, tensor in collated.items()
        }
        segment = embedder(**in_dtype)
        if unsupported := unmet(segment, self.backbone):
            raise DataError(f"input '{name}': {unsupported}; give the backbone more, or use another input")
        return segment

    def _check_positions(self, slots: Slots, free: Tensor, custom_positions: bool, room: int) -> None:
        """Raises DataError for rows that need more positions than the encoder has. (Positions are read only if there
        are so many slots, or if an input has `custom_positions`, since reading waits for the device.)"""
        limit = self.backbone.max_positions - room
        if (custom_positions or slots.positions.shape[1] > limit) and int(free.max()) > limit:
            advice = f", {room} of them reserved for the text; lower max_tokens, or use" if room else "; use"
            raise DataError(
                f"an example needs {int(free.max())} positions, but the encoder has {self.backbone.max_positions}"
                f"{advice} shorter inputs"
            )

    def behind(self, prefix: Prefix, tail: Tail) -> Slots:
        """The slots of a tail (B, S), with positions that continue those of the prefix."""
        return self.written(prefix, tail.ids, tail.offsets, tail.layout)

    def rows(self, batch: Batch, tail: Tail) -> tuple[Slots, Tensor]:
        """Rows for training, prefix and tail, and the labels of their slots (B, L), -100 where nothing is predicted.
        Real slots come first, so that a row has padding only at its end, not after every input."""
        prefix = self.prefix(batch)
        unpacked = prefix.slots.followed_by(self.behind(prefix, tail))
        labels = torch.cat([torch.full_like(prefix.slots.positions, -100), tail.labels], 1)
        return packed(unpacked, labels)

    def written(self, prefix: Prefix, ids: Tensor, offsets: Tensor, layout: Layout) -> Slots:
        """Slots of tokens (B, S) behind a prefix; `offsets` count from the first free position."""
        states = self.backbone.embed(ids)
        if prefix.term is not None:
            states = states + prefix.term.unsqueeze(1)
        return Slots(states, prefix.free + offsets, torch.full_like(ids, self.sequence.target_token_type), layout)

    def _special_token(self, token: int, rows: int) -> Segment:
        ids = torch.full((rows, 1), token, device=self.device)
        return Segment(self.backbone.embed(ids), torch.ones_like(ids, dtype=torch.bool))


@dataclass(frozen=True)
class Objectives:
    """The objectives of a model besides the generator, by name. `vocabularies`: see `ObjectiveConfig.build`."""

    configs: Mapping[str, ObjectiveConfig]
    vocabularies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def build(self, backbone: Backbone, embedders: Mapping[str, Embedder]) -> dict[str, Objective]:
        """Build all heads, and the backbone's pooler if one of them reads it."""
        built = {}
        if any(config.pools for config in self.configs.values()):
            with seeded_part("pooler"):
                backbone.add_pooler()
        of_inputs = {name: embedder.vocabularies() for name, embedder in embedders.items()}
        found = {f"{name}.{kind}": classes for name, of in of_inputs.items() for kind, classes in of.items()}
        for name, config in self.configs.items():
            try:
                with seeded_part(f"objectives.{name}"):
                    built[name] = config.build(backbone, {**self.vocabularies, **found})
            except DataError as error:
                error.about = ("objectives", name)
                raise
        return built


@contextmanager
def seeded_part(name: str) -> Iterator[None]:
    """Seeds torch from its present seed and a part's name, for the part's first weights, and restores the former state:
    no other part changes them."""
    with torch.random.fork_rng([]):
        torch.manual_seed(zlib.crc32(f"{torch.initial_seed()}/{name}".encode()))
        yield


def compose(
    backbone: BackboneConfig,
    inputs: Mapping[str, EmbedderConfig],
    generator: GeneratorConfig | None,
    texts: Iterable[str] | None = None,
    folder: Path | None = None,
    sequence: SequenceConfig | None = None,
    objectives: Objectives | None = None,
) -> Model:
    """Build a model from the configs of its parts, as a recipe does. The first weights of a part depend on torch's seed
    and the part's name. `texts`, `folder`: see `BackboneConfig.build`."""
    if generator is not None and (unfit := generator.backbone_problem(backbone)):
        raise PluginError(unfit)
    objectives = objectives or Objectives({})
    with seeded_part("backbone"):
        encoder = backbone.build(texts=texts, folder=folder)
    named, embedders = {name: config.named(name) for name, config in inputs.items()}, dict[str, Embedder]()
    for name, config in named.items():
        with seeded_part(f"inputs.{name}"):
            embedders[name] = config.build(encoder)
    heads = objectives.build(encoder, embedders)
    with seeded_part("generator"):
        writer = None if generator is None else generator.build(encoder)
    model = Model(encoder, embedders, writer, sequence, heads)
    if generator is not None:
        model.decoding = generator.decoding()
    model.fields = {name: config.fields for name, config in named.items()}
    model.vocabularies = objectives.vocabularies
    model.weights = {name: config.weight for name, config in objectives.configs.items()}
    model.over_batch = frozenset(name for name, config in objectives.configs.items() if config.over_batch)
    return model


def _set_gpu_kernels() -> None:
    """torch's settings of the process for GPUs; they change nothing on a CPU.

    Attention runs without cuDNN, which torch prefers for bf16 on some GPUs: it prepares for every new shape, for up to
    half a second, and rounds the rate of dropout. A context around each pass would end before the backward pass, which
    computes attention again with gradient checkpointing, and contexts of several threads would undo one another.

    Convolutions in float32 are not rounded to TF32; matrix products are not by default.
    """
    torch.backends.cuda.enable_cudnn_sdp(False)
    torch.backends.cudnn.allow_tf32 = False


class _EncodeOnce:
    """A model for the objectives of one batch: the inputs are encoded only once."""

    def __init__(self, model: Model) -> None:
        self.model = model
        self._encoded: tuple[Batch, EncodedInputs] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self.model, name)

    def encode(self, batch: Batch) -> EncodedInputs:
        if self._encoded is None or self._encoded[0] is not batch:
            self._encoded = batch, self.model.encode(batch)
        return self._encoded[1]
