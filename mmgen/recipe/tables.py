"""The tables of a recipe, checked by pydantic: training, sequence, step, and the recipe itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any, Literal, get_origin

from pydantic import Field, SerializeAsAny, SerializerFunctionWrapHandler, model_serializer

from ..configs import (
    BackboneConfig,
    Config,
    DatasetConfig,
    EmbedderConfig,
    GeneratorConfig,
    Gives,
    MetricConfig,
    ObjectiveConfig,
    PartConfig,
    PathOrName,
    ProbeConfig,
    SequenceConfig,
    nested_kinds,
)
from ..decoding import Decoding
from .training import NO_RESULT, Training

NAME = r"\w[\w.-]*"  # of what becomes a file's or a folder's name: never a path
NAME_IN_WORDS = "a name is made of letters, digits, '_', '-' and '.', and begins with one of the first three"

GENERATOR = "generator"  # how the generator is called among objectives
PRETRAINED = "pretrained"  # where a step may start besides an earlier step
WEIGHTS = "weights:"  # what begins a start from weights that somebody published


class SourceConfig(Config):
    """One of several data sets that a step learns from. In a recipe its keys stand among the data set's own."""

    data: SerializeAsAny[DatasetConfig] = Field(description="the data set")
    share: float = Field(1.0, gt=0, description="how much of every update it is, in ratio to the others' shares")
    inputs: tuple[str, ...] = Field(
        (), description="those of the step's inputs that its examples have; by default all of them"
    )
    objectives: tuple[str, ...] = Field(
        (), description="those of the step's objectives that learn from it; by default all that fit its inputs"
    )

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table: dict[str, Any] = handler(self)
        return {**table.pop("data"), **table}

    def filled(
        self,
        step: Step,
        inputs: Mapping[str, EmbedderConfig],
        objectives: Mapping[str, ObjectiveConfig],
    ) -> SourceConfig:
        """The same with every key that is not written: the recipe has these inputs and objectives."""
        read = self.inputs or step.inputs
        there = {name: inputs[name] for name in read if name in inputs}
        fitting = tuple(
            name for name in step.objectives if name not in objectives or not objectives[name].misfits(there)
        )
        return self.model_copy(update={"inputs": read, "objectives": self.objectives or fitting})


SOURCE_KEYS = tuple(name for name in SourceConfig.model_fields if name != "data")


class Step(Config):
    """One row of the table: which inputs it reads, what it learns, where it starts."""

    inputs: tuple[str, ...] = Field(min_length=1, description="names of inputs")
    train: tuple[str, ...] = Field(
        min_length=1, description='names of inputs, or "backbone" (its masked-LM head included)'
    )
    start: Annotated[str, PathOrName(behind=WEIGHTS)] = Field(
        PRETRAINED,
        description='"pretrained", or the step whose weights it goes on from; or "weights:" and a file, a folder or a '
        "hub name of published weights, of which the step's parts take what is theirs",
    )
    objectives: tuple[str, ...] = Field(
        (GENERATOR,),
        min_length=1,
        description='what it learns, by the names of [objectives.NAME] tables; "generator", the default: to write',
    )
    training: Training = Field(Training(), description="the recipe's training settings, with this step's own")
    data: SerializeAsAny[DatasetConfig] | tuple[SourceConfig, ...] | None = Field(
        None,
        description="what it learns from, a table like [data], or a list of such tables; by default the recipe's own "
        "data",
    )
    evaluate: bool | Literal["own"] = Field(
        True,
        description="write or predict for the recipe's data.test_split and score it, a row of the table; "
        '"own": for its own data, the first where there are several; false for a warm start',
    )

    @property
    def weights(self) -> str | None:
        """Where the published weights are that it starts from."""
        return self.start.removeprefix(WEIGHTS) if self.start.startswith(WEIGHTS) else None

    @property
    def before(self) -> str | None:
        """The step that it starts from."""
        return None if self.start == PRETRAINED or self.weights is not None else self.start

    @property
    def own(self) -> tuple[DatasetConfig, ...]:
        """The data sets of its own, the first one first."""
        if isinstance(self.data, tuple):
            return tuple(source.data for source in self.data)
        return () if self.data is None else (self.data,)

    def sources(
        self,
        data: DatasetConfig,
        inputs: Mapping[str, EmbedderConfig],
        objectives: Mapping[str, ObjectiveConfig],
    ) -> dict[str, SourceConfig]:
        """What it learns from, each under the name that people read, its `type`; by default the recipe's `data`."""
        if not isinstance(self.data, tuple):
            whole = SourceConfig(data=self.data or data, inputs=self.inputs, objectives=self.objectives)
            return {whole.data.type: whole}
        found: dict[str, SourceConfig] = {}
        for source in self.data:
            kind = source.data.type
            count = sum(other.data.type == kind for other in found.values())
            found[f"{kind} {count + 1}" if count else kind] = source.filled(self, inputs, objectives)
        return found


class Recipe(Config):
    """Everything a run is made of. Its JSON is the whole truth: a run can be repeated from it."""

    name: str = Field(min_length=1, pattern=f"^{NAME}$", strict=True, description="names the run folder")
    description: str = Field("", strict=True, description="a sentence on what it is for; the report shows it")
    profile: str | None = Field(None, pattern=f"^{NAME}$", strict=True)
    seed: int = Field(0, ge=0, strict=True, description="all randomness comes from it")
    output: str = Field("runs", strict=True, description="where run folders go")
    jobs: int = Field(
        1,
        ge=1,
        le=64,
        strict=True,
        description="how many steps a run on a processor learns at a time, where `mmgen run --jobs` does not say; "
        "never more than there are cores",
    )
    backbone: SerializeAsAny[BackboneConfig]
    inputs: dict[str, SerializeAsAny[EmbedderConfig]] = Field(
        min_length=1, description="embedders, in the order of the sequence"
    )
    generator: SerializeAsAny[GeneratorConfig]
    objectives: dict[str, SerializeAsAny[ObjectiveConfig]] = Field({}, description="what steps learn beside writing")
    sequence: SequenceConfig = SequenceConfig()
    training: Training = Training()
    steps: dict[str, Step] = Field(min_length=1)
    data: SerializeAsAny[DatasetConfig]
    decoding: Decoding = Decoding()
    metrics: dict[str, SerializeAsAny[MetricConfig]] = {}
    probes: dict[str, SerializeAsAny[ProbeConfig]] = {}

    def parts(self) -> list[PartConfig]:
        """The configs of all parts that it is made of, those inside of others too."""
        return list(_parts(self))

    def predicts(self, step: str) -> tuple[str, Gives] | None:
        """Which objective of a step makes its predictions, and of which kind; one of a step at most does."""
        for name in self.steps[step].objectives:
            config = self.generator if name == GENERATOR else self.objectives[name]
            if config.gives is not None:
                return name, config.gives
        return None

    def own_data(self, step: str) -> DatasetConfig | None:
        """The data of its own that a step is scored on (of several the first): where it says so, or needs labels that
        the recipe's data lack."""
        own = self.steps[step]
        needed = {label for name in own.objectives if name != GENERATOR for label in self.objectives[name].labels}
        scored = own.evaluate == "own" or not needed <= set(self.data.labels)
        return own.own[0] if scored and own.own else None

    def judging(self, step: str) -> dict[str, MetricConfig]:
        """The metrics that score what a step predicts, by name: those that judge its kind, and whose labels the
        examples have."""
        predicts, known = self.predicts(step), set((self.own_data(step) or self.data).labels)
        kind = predicts[1] if predicts else None
        return {
            name: config for name, config in self.metrics.items() if kind in config.judges and known >= {*config.labels}
        }

    def writes(self, step: str) -> bool:
        """Whether a step writes texts about the recipe's own data: a row of the table that generators share."""
        return bool(self.steps[step].evaluate) and self.makes_texts(step) and self.own_data(step) is None

    def makes_texts(self, step: str) -> bool:
        """Whether what a step is asked for are texts: also where it only trains, since its generator can write."""
        predicts = self.predicts(step)
        return predicts is None or predicts[1] == "text"

    def sources(self, step: str) -> dict[str, SourceConfig]:
        """What a step learns from: see `Step.sources`."""
        return self.steps[step].sources(self.data, self.inputs, self.objectives)

    def asked(self, inputs: Iterable[str], objectives: Iterable[str]) -> tuple[str, ...]:
        """Those of these inputs that data must have, where these objectives learn from it: they may fill others."""
        filled = {field for name in objectives if name != GENERATOR for field in self.objectives[name].fills()}
        return tuple(name for name in inputs if not set(self.inputs[name].fields) <= filled)

    def chain(self, step: str) -> list[str]:
        """The step and those it starts from, the first one first."""
        found = [step]
        while before := self.steps[found[-1]].before:
            found.append(before)
        return found[::-1]

    def ordered(self, only: str | None = None) -> list[str]:
        """Steps in an order in which every one comes after the one it starts from."""
        order: dict[str, None] = {}
        for step in [only] if only else self.steps:
            order.update(dict.fromkeys(self.chain(step)))
        return list(order)

    def identity(self) -> dict[str, Any]:
        """The recipe without the keys that cannot change a result; two runs with equal ones are the same run."""
        tables = self.model_dump(mode="json", exclude={"output": True, "description": True, "jobs": True})
        for training in [tables["training"], *(step["training"] for step in tables["steps"].values())]:
            for key in NO_RESULT:
                training.pop(key)
        return tables


_held = nested_kinds(Recipe).items()
_named = {name for name, info in Recipe.model_fields.items() if get_origin(info.annotation) is dict}
PARTS = {name: kind for name, kind in _held if name not in _named}  # table -> kind of the part it describes
NAMED_PARTS = {name: kind for name, kind in _held if name in _named}  # table of named tables -> kind


TABLES: dict[str, type[Config]] = {"sequence": SequenceConfig, "training": Training, "decoding": Decoding}


def _parts(value: Any) -> Iterator[PartConfig]:
    if isinstance(value, PartConfig):
        yield value
    inner: Any = [each for _, each in value] if isinstance(value, Config) else ()
    if isinstance(value, dict | tuple):
        inner = value.values() if isinstance(value, dict) else value
    for each in inner:
        yield from _parts(each)
