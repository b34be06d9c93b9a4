"""The model: backbone, embedders, generator and objectives, and their losses; `compose` builds it."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from .configs import BackboneConfig, EmbedderConfig, GeneratorConfig, ObjectiveConfig, SequenceConfig
from .decoding import Decoding, DecodingConfig
from .errors import DataError, PluginError
from .objectives import Generator, Objective
from .parts import Backbone, Embedder
from .sequence import EncodedInputs, Sequencer
from .tensors import Batch, Loss

EMBEDDERS = "embedders."  # before the input's name, in the names of its parameters


class Model(Sequencer):
    """A plain module: `model(batch)` is the loss; `mmgen.evaluation.answers.generate` writes texts with it.

    generator  writes texts; a model whose steps only predict may have none (`has_generator`)
    sequence   the layout of the inputs
    inputs     names of the inputs, in order; a batch may have only some of them
    frozen     names of the parameters that a part froze when it was built; no step trains them
    """

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
                f"sequence.target_token_type = {self.sequence.target_token_type}, but the backbone has "
                f"{backbone.types} token types, counted from 0; lower target_token_type, or give the backbone more"
            )
        self.embedders: Any = nn.ModuleDict(embedders)  # torch declares the items as plain modules
        self.objectives = nn.ModuleDict(objectives or {})
        self.decoding: DecodingConfig = Decoding()  # how it writes unless something else is asked for
        self.initialised: set[str] = set()  # objectives whose `init_from_model` `mmgen.fit` has called
        self.weights: dict[str, float] = {}  # objective -> factor of its losses; by default 1
        self.over_batch: frozenset[str] = frozenset()  # objectives whose losses compare the rows of a batch
        self.frozen = frozenset(name for name, parameter in self.named_parameters() if not parameter.requires_grad)
        self.fields: Mapping[str, tuple[str, ...]] = {}  # input -> the fields of an example that it reads
        self.vocabularies: Mapping[str, tuple[str, ...]] = {}  # label -> the classes that heads were built with

    @property
    def inputs(self) -> tuple[str, ...]:
        return tuple(self.embedders)

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

    def part(self, name: str) -> nn.Module:
        """The part with this name: "backbone" (with its head) or the embedder of an input."""
        return self.backbone if name == "backbone" else self.embedders[name]


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
