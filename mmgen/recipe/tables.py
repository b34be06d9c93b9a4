"""A checked recipe as classes: steps, sources and all; what a step predicts, the order of steps, the identity."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetPydanticSchema,
    SerializeAsAny,
    SerializerFunctionWrapHandler,
    ValidationError,
    ValidationInfo,
    WrapValidator,
    field_serializer,
    field_validator,
)
from pydantic_core import PydanticCustomError, core_schema

from ..configs import (
    LIKELIHOOD,
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
)
from ..decoding import Decoding, DecodingConfig
from ..errors import DataError, RecipeError, unknown
from .toml_lines import Key
from .training import NO_RESULT, Training

if TYPE_CHECKING:
    from ..parts import Dataset

NAME = r"^\w[\w-]*$"  # of a name that becomes the name of a file or a module
MISTAKE = "mistake"  # type of the errors of `mistakes`
GENERATOR = "generator"  # the generator's name among objectives
PRETRAINED = "pretrained"  # `start` of a step that starts from the encoder's weights
WEIGHTS = "weights:"  # prefix of a `start` from published weights
BESIDE = (
    "description",
    "default_step",
    "plugins",
    "pretrained",
)  # keys that change no result; a run folder saves the latest value
EXPORT = "export:"  # prefix of a `start` from an exported model
NO_DATA = "none"  # the `type` of an export's data
FROM_START = ("inputs", "objectives", "data", "evaluate")  # of a step that trains nothing
RESERVED = ("backbone", GENERATOR, PRETRAINED)  # words of the lists of a step


def mistakes(*mistakes: tuple[Key, str]) -> ValidationError:
    """An error with these messages, each about a key."""
    custom = [(key, PydanticCustomError(MISTAKE, "{text}", {"text": text})) for key, text in mistakes]
    return ValidationError.from_exception_data("recipe", [{"type": e, "loc": key, "input": None} for key, e in custom])


def _unreserved(name: str) -> str:
    if name in RESERVED:
        raise ValueError(f"'{name}' is reserved for the steps; choose another name")
    return name


Name = Annotated[str, Field(pattern=NAME), AfterValidator(_unreserved)]


def _nested(cls: Any, handler: GetCoreSchemaHandler) -> core_schema.CoreSchema:
    """A table of a recipe, which `parse.Parts` reads by itself, so that its mistakes are described with its keys."""

    def read(value: Any, validate: Callable[[Any], Any], info: ValidationInfo) -> Any:
        return info.context.nested(cls, value) if info.context and isinstance(value, dict) else validate(value)

    return core_schema.with_info_wrap_validator_function(read, handler(cls))


TABLE = GetPydanticSchema(_nested)


def _listed(names: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
    """Names that a step lists: of tables of the recipe, each once. Raises ValidationError."""
    tables = info.context.table if info.context else dict.fromkeys(("inputs", "objectives"), names).__getitem__
    known = {
        "inputs": [*tables("inputs")],
        "objectives": [GENERATOR, *tables("objectives")],
        "train": [*info.data.get("inputs", tables("inputs")), "backbone"],
    }[info.field_name or ""]
    problems = [problem for name in names if known and (problem := unknown(name, known))]
    problems += [f"'{name}' is listed twice; list it once" for name in names if names.count(name) > 1]
    if problems:
        raise mistakes(*((Key(), problem) for problem in problems))
    return names


def _a_step(name: str, info: ValidationInfo) -> str:
    if info.context and (problem := unknown(name, info.context.table("steps"))):
        raise ValueError(problem)
    return name


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


def _as_list(value: Any, handler: Callable[[Any], Any], info: ValidationInfo) -> Any:
    """One table is a list of one data set."""
    if info.context and isinstance(value, dict):
        return (info.context.part(DatasetConfig, value),)
    return handler(tuple(value) if isinstance(value, list) else value)


class Step(Config):
    """One row of the table: the inputs, the parts to train, and the weights to start from."""

    inputs: tuple[str, ...] = Field((), min_length=1, description="names of inputs")
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
    training: Annotated[Training, TABLE] = Field(
        {}, validate_default=True, description="overrides of the recipe's training settings"
    )
    data: Annotated[tuple[SerializeAsAny[DatasetConfig], ...], WrapValidator(_as_list)] = Field(
        (),
        description="training data: a table like [data], or a list of such tables; by default [data]",
    )
    decoding: Annotated[SerializeAsAny[DecodingConfig], TABLE] | None = Field(
        None, description="overrides of [decoding] for the texts of this step"
    )
    evaluate: Literal[True, False, "own"] = Field(
        True,
        description="predict for the recipe's data.test_split and score the predictions, a row of the table; "
        '"own": for the data of this step, the first if there are several; false for a step that only pretrains',
    )

    _names = field_validator("inputs", "train", "objectives")(_listed)

    @field_serializer("data", mode="wrap")
    def _as_written(self, data: tuple[DatasetConfig, ...], handler: SerializerFunctionWrapHandler) -> Any:
        """One data set is a table, whose keys can be overridden."""
        return handler(data)[0] if len(data) == 1 else handler(data)

    @field_validator("start")
    @classmethod
    def _starts(cls, start: str, info: ValidationInfo) -> str:
        if start.startswith((WEIGHTS, EXPORT)):
            if not start.partition(":")[2].strip():
                raise ValueError(f'write a file, a folder or a hub name after "{start.strip()}"')
        elif info.context:
            steps = info.context.table("steps")
            if problem := unknown(start, {**steps, PRETRAINED: None}):
                raise ValueError(problem)
            trail = [start]
            while (before := info.context.table("steps", trail[-1]).get("start")) in steps and before not in trail:
                trail.append(before)
            if before in trail:
                raise ValueError(f"the steps start from each other in a cycle: {' -> '.join([*trail, before])}")
        return start

    def model_post_init(self, context: Any) -> None:
        if not self.train and self.before is None:
            raise ValueError("train: must not be empty, unless `start` names the step whose weights this step has")
        if self.train and not self.inputs:
            raise ValueError("inputs: is missing")

    @property
    def weights(self) -> str | None:
        """The path or hub name of the published weights that the step starts from; "export:..." for an export."""
        return self.start.removeprefix(WEIGHTS) if self.start.startswith((WEIGHTS, EXPORT)) else None

    @property
    def before(self) -> str | None:
        """The earlier step that this step starts from."""
        return None if self.start == PRETRAINED or self.weights is not None else self.start


class Recipe(Config):
    """All settings of a run. A run can be repeated from the recipe's JSON alone."""

    name: str = Field(min_length=1, pattern=NAME, description="names the run folder")
    description: str = Field("", description="a sentence about its purpose; the report shows it")
    plugins: tuple[Path, ...] = Field(
        (), description="Python files with parts of one's own, which `mmgen run` and `mmgen check` execute"
    )
    profile: str | None = Field(None, pattern=NAME)
    seed: int = Field(0, ge=0, lt=2**63, description="seed of all random numbers")
    pretrained: bool = Field(False, description="refuse random weights, of the encoder and of networks of features")
    output: str = Field("runs", description="folder of the run folders")
    jobs: int = Field(
        1,
        ge=1,
        le=64,
        description="steps that a run trains at the same time, without `mmgen run --jobs`; at most the number of GPUs, "
        "or of cores on the CPU",
    )
    backbone: SerializeAsAny[BackboneConfig]
    inputs: dict[Name, SerializeAsAny[EmbedderConfig]] = Field(
        min_length=1, description="embedders, in the order of the sequence"
    )
    generator: SerializeAsAny[GeneratorConfig] | None = Field(
        None, description="writes texts; not needed by a recipe whose steps only train [objectives.NAME]"
    )
    objectives: dict[Name, SerializeAsAny[ObjectiveConfig]] = Field({}, description="what steps train besides writing")
    sequence: Annotated[SequenceConfig, TABLE] = SequenceConfig()
    training: Annotated[Training, TABLE] = Training()
    steps: dict[Name, Annotated[Step, TABLE]] = Field(min_length=1)
    default_step: Annotated[str, AfterValidator(_a_step)] | None = Field(
        None,
        description="the step that answers if none is named and the inputs are its own; by default the best one by the "
        "table's first metric",
    )
    data: SerializeAsAny[DatasetConfig]
    decoding: Annotated[SerializeAsAny[DecodingConfig], TABLE] = Field(Decoding(), description="how texts are searched")
    metrics: dict[Name, SerializeAsAny[MetricConfig]] = {}
    probes: dict[Name, SerializeAsAny[ProbeConfig]] = {}
    callbacks: dict[Name, SerializeAsAny[CallbackConfig]] = {}

    @field_validator("inputs")
    @classmethod
    def _named(cls, inputs: dict[str, EmbedderConfig]) -> dict[str, EmbedderConfig]:
        return {name: config.named(name) for name, config in inputs.items()}

    @field_validator("steps")
    @classmethod
    def _filled(cls, steps: dict[str, Step]) -> dict[str, Step]:
        """The steps; one that trains nothing has keys of the step that it starts from."""
        for name, step in steps.items():
            chain = [step]
            while not chain[-1].train and chain[-1].start in steps:
                chain.append(steps[chain[-1].start])
            for key in FROM_START if not step.train else ():
                value = next((getattr(s, key) for s in chain if key in s.model_fields_set), getattr(chain[-1], key))
                steps[name] = steps[name].model_copy(update={key: value})
        return steps

    @property
    def heads(self) -> dict[str, Any]:
        """The objectives and the generator, by their names among the objectives of a step."""
        return {GENERATOR: self.generator, **self.objectives}

    def predicts(self, step: str) -> tuple[str, Gives] | None:
        """The objective of a step that makes its predictions, and their kind; at most one objective does."""
        for name in self.steps[step].objectives:
            if gives := self.heads[name].gives:
                return name, gives
        return None

    def scored_data(self, step: str) -> DatasetConfig | None:
        """The step's first data set if the step is scored on it: with evaluate = "own", or if the recipe's [data] lacks
        labels that the step needs."""
        config = self.steps[step]
        needed = {label for name in config.objectives for label in self.heads[name].required_labels}
        scored = config.evaluate == "own" or not needed <= set(self.data.labels)
        return config.data[0] if scored and config.data else None

    def judging(self, step: str) -> dict[str, MetricConfig]:
        """The metrics that score a step, by name: those for its kind of predictions whose labels the examples have."""
        _, kind = self.predicts(step) or ("", "")
        kinds = {kind, LIKELIHOOD} if kind == "text" else {kind}
        known = {*(self.scored_data(step) or self.data).labels}
        return {
            name: config
            for name, config in self.metrics.items()
            if kinds & config.judges and known >= {*config.required_labels}
        }

    def only_about(self, step: str) -> str:
        """What the step's training data are about, if all of them say that a model of them knows nothing else."""
        about = dict.fromkeys(data.only_about for data in self.sources(step).values())
        return " and ".join(about) if all(about) else ""

    def writes(self, step: str) -> bool:
        """Whether a step writes texts for the recipe's [data]: a row of the table that generators share."""
        return bool(self.steps[step].evaluate) and self.makes_texts(step) and self.scored_data(step) is None

    def makes_texts(self, step: str) -> bool:
        """Whether a step predicts texts. A step that only trains counts too, since the recipe's generator can write."""
        predicts = self.predicts(step)
        return self.generator is not None if predicts is None else predicts[1] == "text"

    def sources(self, step: str) -> dict[str, DatasetConfig]:
        """The training data of a step, with inputs and objectives, by a name for people: its `type`, and a number."""
        config, by_name = self.steps[step], dict[str, DatasetConfig]()
        for data in config.data or (self.data,):
            inputs = data.inputs or config.inputs
            read = {name: self.inputs[name] for name in inputs}
            fitting = tuple(name for name in config.objectives if not self.heads[name].errors(read))
            objectives = data.objectives or (fitting if config.data[1:] else config.objectives)
            count = sum(earlier.type == data.type for earlier in by_name.values())
            name = f"{data.type} {count + 1}" if count else data.type
            by_name[name] = data.model_copy(update={"inputs": inputs, "objectives": objectives})
        return by_name

    def decoding_of(self, step: str) -> DecodingConfig:
        """How a step's texts are searched."""
        return self.steps[step].decoding or self.decoding

    def decoding_as(self, step: str) -> Recipe:
        """A copy whose [decoding] is that of a step."""
        return self.model_copy(update={"decoding": self.decoding_of(step)})

    def trained_by(self, step: str) -> str:
        """The step that has trained the weights of a step: the step itself, unless it trains nothing."""
        return next((name for name in reversed(self.chain(step)) if self.steps[name].train), step)

    def required_inputs(self, inputs: Iterable[str], objectives: Iterable[str]) -> tuple[str, ...]:
        """Those of these inputs that the data must have; the objectives may provide the others."""
        filled = {field for name in objectives for field in self.heads[name].provides()}
        return tuple(name for name in inputs if not set(self.inputs[name].fields) <= filled)

    def check_steps(self, names: Iterable[str]) -> None:
        """Raises RecipeError for a name in the option --step that no step has."""
        for name in names:
            if problem := unknown(name, self.steps):
                raise RecipeError(f"--step: {problem}")

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
        of_training = {"training": {*NO_RESULT}}
        beside = dict.fromkeys((*BESIDE, "output", "jobs", "callbacks"), True)
        return self.model_dump(mode="json", exclude={**beside, **of_training, "steps": {"__all__": of_training}})


def parts_in(value: Any) -> Iterator[PartConfig]:
    """The configs of all parts in a config, table or list, including parts inside other parts."""
    yield from (part for _, part in placed_parts(value))


def placed_parts(value: Any, path: Key = ()) -> Iterator[tuple[Key, PartConfig]]:
    """As `parts_in`, each with the path of its table."""
    if isinstance(value, PartConfig):
        yield path, value
    inner = enumerate(value) if isinstance(value, tuple) else value.items() if isinstance(value, dict) else ()
    for name, config in value if isinstance(value, Config) else inner:
        yield from placed_parts(config, (*path, str(name)))
