"""A checked recipe as classes: steps, sources and all; what a step predicts, the order of steps, the identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_origin

from pydantic import (
    Field,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    WrapValidator,
    field_serializer,
    field_validator,
    model_serializer,
)

from ..configs import (
    BackboneConfig,
    CallbackConfig,
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
from ..decoding import Decoding, DecodingConfig
from ..errors import DataError, RecipeError, did_you_mean
from .toml_lines import Key
from .training import NO_RESULT, Training

if TYPE_CHECKING:
    from ..parts import Dataset

NAME = r"^\w[\w.-]*$"  # of a name that becomes the name of a file or a folder: never a path
MODULE = r"^\w[\w-]*$"  # of a name that becomes the name of a module too

GENERATOR = "generator"  # the generator's name among objectives
PRETRAINED = "pretrained"  # `start` of a step that starts from the encoder's weights
WEIGHTS = "weights:"  # prefix of a `start` from published weights
BESIDE = ("description", "default_step", "plugins")  # keys that change no result; a run folder saves the latest value
EXPORT = "export:"  # prefix of a `start` from an exported model
NO_DATA = "none"  # the `type` of an export's data

Name = Annotated[str, Field(pattern=NAME)]


def _of_generator(value: Any, validate: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """The decoding options of a recipe, by the class that its generator names."""
    return info.context.decoding(value) if info.context and isinstance(value, dict) else validate(value)


Options = Annotated[SerializeAsAny[DecodingConfig], WrapValidator(_of_generator)]


class NoData(DatasetConfig):
    """The data of an export, which has none, and what the model knows alone."""

    type: str = NO_DATA
    about: str = Field("", max_length=80)

    @property
    def only_about(self) -> str:  # type: ignore[override]  # of other data sets it is a constant
        return self.about

    def build(self) -> Dataset:
        raise DataError(
            "an export has no data; `mmgen predict --as` takes it with --data RECIPE; for anything else name a run "
            "folder"
        )


class SourceConfig(Config):
    """One of several data sets that a step trains on. In a recipe these keys are in the table of the data set."""

    data: SerializeAsAny[DatasetConfig] = Field(description="the data set")
    share: float = Field(
        1.0, gt=0, description="its share of every update, in ratio to the shares of the other data sets"
    )
    inputs: tuple[str, ...] = Field(
        (), min_length=1, description="the step's inputs that its examples have; by default all"
    )
    objectives: tuple[str, ...] = Field(
        (), min_length=1, description="the step's objectives that train on it; by default all that fit its inputs"
    )

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        table: dict[str, Any] = handler(self)
        return {**table.pop("data"), **{key: value for key, value in table.items() if value}}  # without defaults of ()


SOURCE_KEYS = tuple(name for name in SourceConfig.model_fields if name != "data")


class Step(Config):
    """One row of the table: the inputs, the parts to train, and the weights to start from."""

    inputs: tuple[str, ...] = Field(min_length=1, description="names of inputs")
    train: tuple[str, ...] = Field(
        description='what to train: names of inputs, or "backbone" (including its masked-LM head); [] trains nothing: '
        "the step writes or predicts with the weights of the step that it starts from, by default as that step does"
    )
    start: Annotated[str, PathOrName(WEIGHTS, EXPORT)] = Field(
        PRETRAINED,
        description='initial weights: "pretrained", or the name of a step, or "weights:" and a file, a folder or a hub '
        'name of published weights, or "export:" and an exported model (a folder or hf:user/name), from which the '
        "step's parts load theirs",
    )
    objectives: tuple[str, ...] = Field(
        (GENERATOR,),
        min_length=1,
        description='names of [objectives.NAME] tables to train with; "generator", the default, trains to write texts',
    )
    training: Training = Field(Training(), description="overrides of the recipe's training settings")
    data: tuple[SourceConfig, ...] = Field(
        (),
        min_length=1,
        description="training data: a table like [data], or a list of such tables; by default [data]",
    )
    decoding: Options | None = Field(None, description="overrides of [decoding] for the texts of this step")
    evaluate: Literal[True, False, "own"] = Field(
        True,
        description="predict for the recipe's data.test_split and score the predictions, a row of the table; "
        '"own": for the data of this step, the first if there are several; false for a step that only pretrains',
    )

    @field_serializer("data", mode="wrap")
    def _as_written(self, data: tuple[SourceConfig, ...], handler: SerializerFunctionWrapHandler) -> Any:
        """A data set without keys of a source as a table; nothing for [data]."""
        tables = handler(data)
        if len(data) == 1 and data[0] == SourceConfig(data=data[0].data):
            tables[0].pop("share")
            return tables[0]
        return tables or None

    @property
    def weights(self) -> str | None:
        """The path or hub name of the published weights that the step starts from; "export:..." for an export."""
        if self.start.startswith(EXPORT):
            return self.start
        return self.start.removeprefix(WEIGHTS) if self.start.startswith(WEIGHTS) else None

    @property
    def before(self) -> str | None:
        """The earlier step that this step starts from."""
        return None if self.start == PRETRAINED or self.weights is not None else self.start

    @property
    def data_sets(self) -> tuple[DatasetConfig, ...]:
        """The data sets in the step's `data`, in order; empty for the recipe's [data]."""
        return tuple(source.data for source in self.data)


class Recipe(Config):
    """All settings of a run. A run can be repeated from the recipe's JSON alone."""

    name: str = Field(min_length=1, pattern=NAME, description="names the run folder")
    description: str = Field("", description="a sentence about its purpose; the report shows it")
    plugins: tuple[Path, ...] = Field(
        (), description="Python files with parts of one's own, which `mmgen run` and `mmgen check` execute"
    )
    profile: str | None = Field(None, pattern=NAME)
    seed: int = Field(0, ge=0, lt=2**63, description="seed of all random numbers")
    output: str = Field("runs", description="folder of the run folders")
    jobs: int = Field(
        1,
        ge=1,
        le=64,
        description="steps that a run trains at the same time, without `mmgen run --jobs`; at most the number of GPUs, "
        "or of cores on the CPU",
    )
    backbone: SerializeAsAny[BackboneConfig]
    inputs: dict[Annotated[str, Field(pattern=MODULE)], SerializeAsAny[EmbedderConfig]] = Field(
        min_length=1, description="embedders, in the order of the sequence"
    )
    generator: SerializeAsAny[GeneratorConfig] | None = Field(
        None, description="writes texts; not needed by a recipe whose steps only train [objectives.NAME]"
    )
    objectives: dict[Name, SerializeAsAny[ObjectiveConfig]] = Field({}, description="what steps train besides writing")
    sequence: SequenceConfig = SequenceConfig()
    training: Training = Training()
    steps: dict[Name, Step] = Field(min_length=1)
    default_step: str | None = Field(
        None,
        description="the step that answers if none is named and the inputs are its own; by default the best one by the "
        "table's first metric",
    )
    data: SerializeAsAny[DatasetConfig]
    decoding: Options = Field(Decoding(), description="how texts are searched")
    metrics: dict[Name, SerializeAsAny[MetricConfig]] = {}
    probes: dict[Name, SerializeAsAny[ProbeConfig]] = {}
    callbacks: dict[Name, SerializeAsAny[CallbackConfig]] = {}

    @field_validator("inputs")
    @classmethod
    def _named(cls, inputs: dict[str, EmbedderConfig]) -> dict[str, EmbedderConfig]:
        return {name: config.named(name) for name, config in inputs.items()}

    def parts(self) -> list[PartConfig]:
        """The configs of all parts of the recipe, including parts inside other parts."""
        return list(parts_in(self))

    def predicts(self, step: str) -> tuple[str, Gives] | None:
        """The objective of a step that makes its predictions, and their kind; at most one objective does."""
        for name in self.steps[step].objectives:
            config = self.generator if name == GENERATOR else self.objectives[name]
            if config is not None and config.gives is not None:
                return name, config.gives
        return None

    def scored_data(self, step: str) -> DatasetConfig | None:
        """The step's first data set if the step is scored on it: with evaluate = "own", or if the recipe's [data] lacks
        labels that the step needs."""
        config = self.steps[step]
        needed = {
            label for name in config.objectives if name != GENERATOR for label in self.objectives[name].required_labels
        }
        scored = config.evaluate == "own" or not needed <= set(self.data.labels)
        return config.data_sets[0] if scored and config.data_sets else None

    def judging(self, step: str) -> dict[str, MetricConfig]:
        """The metrics that score a step, by name: those for its kind of predictions whose labels the examples have."""
        predicts, known = self.predicts(step), set((self.scored_data(step) or self.data).labels)
        kind = predicts[1] if predicts else None
        return {
            name: config
            for name, config in self.metrics.items()
            if kind in config.judges and known >= {*config.required_labels}
        }

    def only_about(self, step: str) -> str:
        """What the step's training data are about, if all of them say that a model of them knows nothing else."""
        about = [source.data.only_about for source in self.sources(step).values()]
        return " and ".join(dict.fromkeys(about)) if all(about) else ""

    def writes(self, step: str) -> bool:
        """Whether a step writes texts for the recipe's [data]: a row of the table that generators share."""
        return bool(self.steps[step].evaluate) and self.makes_texts(step) and self.scored_data(step) is None

    def makes_texts(self, step: str) -> bool:
        """Whether a step predicts texts. A step that only trains counts too, since the recipe's generator can write."""
        predicts = self.predicts(step)
        return self.generator is not None if predicts is None else predicts[1] == "text"

    def sources(self, step: str) -> dict[str, SourceConfig]:
        """The training data of a step, with all keys, by a name for people: the data set's `type`, and a number."""
        config, by_name = self.steps[step], dict[str, SourceConfig]()
        for source in config.data or (SourceConfig(data=self.data),):
            kind, inputs = source.data.type, source.inputs or config.inputs
            read = {name: self.inputs[name] for name in inputs}
            fitting = (
                name for name in config.objectives if name == GENERATOR or not self.objectives[name].errors(read)
            )
            trained = source.objectives or (tuple(fitting) if config.data[1:] else config.objectives)
            count = sum(earlier.data.type == kind for earlier in by_name.values())
            filled = source.model_copy(update={"inputs": inputs, "objectives": trained})
            by_name[f"{kind} {count + 1}" if count else kind] = filled
        return by_name

    def decoding_of(self, step: str) -> DecodingConfig:
        """How a step's texts are searched."""
        return self.steps[step].decoding or self.decoding

    def decoding_as(self, step: str) -> Recipe:
        """A copy whose [decoding] is that of a step."""
        own = self.steps[step].model_copy(update={"decoding": None})
        return self.model_copy(update={"decoding": self.decoding_of(step), "steps": {**self.steps, step: own}})

    def trained_by(self, step: str) -> str:
        """The step that has trained the weights of a step: the step itself, unless it trains nothing."""
        before = self.steps[step].before
        return step if self.steps[step].train or before is None else self.trained_by(before)

    def required_inputs(self, inputs: Iterable[str], objectives: Iterable[str]) -> tuple[str, ...]:
        """Those of these inputs that the data must have; the objectives may provide the others."""
        filled = {field for name in objectives if name != GENERATOR for field in self.objectives[name].provides()}
        return tuple(name for name in inputs if not set(self.inputs[name].fields) <= filled)

    def check_steps(self, names: Iterable[str]) -> None:
        """Raises RecipeError for a name in the option --step that no step has."""
        for name in names:
            if name not in self.steps:
                hint, choices = did_you_mean(name, self.steps), ", ".join(self.steps)
                raise RecipeError(f"--step {name}: the recipe has no such step{hint}; available: {choices}")

    def chain(self, step: str) -> list[str]:
        """The step and all steps before it along `start`, in order."""
        steps = [step]
        while before := self.steps[steps[-1]].before:
            steps.append(before)
        return steps[::-1]

    def ordered(self, only: Iterable[str] = ()) -> list[str]:
        """All steps, or `only` and the steps from which they start; each after the step that it starts from."""
        return list(dict.fromkeys(before for step in only or self.steps for before in self.chain(step)))

    def identity(self) -> dict[str, Any]:
        """The recipe without the keys that cannot change a result; two runs of equal identity are the same run."""
        tables = self.model_dump(mode="json", exclude={*BESIDE, "output", "jobs", "callbacks"})
        for training in [tables["training"], *(step["training"] for step in tables["steps"].values())]:
            for key in NO_RESULT:
                training.pop(key)
        return tables


_named = {name for name, info in Recipe.model_fields.items() if get_origin(info.annotation) is dict}
PARTS = {name: kind for name, kind in nested_kinds(Recipe).items() if name not in _named}  # table -> kind of its part
NAMED_PARTS = {name: kind for name, kind in nested_kinds(Recipe).items() if name in _named}  # table of tables -> kind
TABLES: dict[str, type[Config]] = {"sequence": SequenceConfig, "training": Training}


def parts_in(value: Any) -> Iterator[PartConfig]:
    """The configs of all parts in a config, table or list, including parts inside other parts."""
    yield from (part for _, part in placed_parts(value))


def placed_parts(value: Any, path: Key = ()) -> Iterator[tuple[Key, PartConfig]]:
    """As `parts_in`, each with the path of its table."""
    if isinstance(value, PartConfig):
        yield path, value
    inner = value if isinstance(value, Config) else value.items() if isinstance(value, dict) else ()
    for name, config in enumerate(value) if isinstance(value, tuple) else inner:
        yield from placed_parts(config, (*path, str(name)))
