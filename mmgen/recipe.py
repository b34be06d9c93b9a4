"""Recipes: TOML in, checked parts and steps out; every mistake on one line, all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SerializeAsAny, ValidationError

from .configs import (
    BackboneConfig,
    Config,
    DatasetConfig,
    Decoding,
    EmbedderConfig,
    GeneratorConfig,
    MetricConfig,
    PartConfig,
    ProbeConfig,
)
from .errors import PluginError, RecipeError
from .layers import Key, Layered, read, setting_table
from .registry import Registry, did_you_mean, nested_kinds

NAME = r"\w[\w.-]*"  # of what becomes a file's or a folder's name: never a path
PRETRAINED = "pretrained"  # where a step may start besides an earlier step


class Training(Config):
    """How a step learns. A step may override any of it in its own `training` table."""

    batch_size: int = Field(128, ge=1, description="pairs (one input, one question) an optimiser update")
    micro_batch: int | None = Field(
        None, ge=1, description="pairs at a time; several make an update. By default the whole batch"
    )
    bucket: int = Field(
        16,
        ge=1,
        description="updates that share their examples out by length, for less padding; 1: each has whatever comes",
    )
    epochs: int = Field(5, ge=1, description="visits of every example")
    learning_rate: float = Field(2e-5, gt=0, description="highest learning rate of the backbone")
    input_learning_rate: float | None = Field(
        None, gt=0, description="highest learning rate of embedders; by default learning_rate"
    )
    warmup: float = Field(
        0.1, ge=0, le=1, description="share of the updates over which the rate rises; then it falls to 0, both linearly"
    )
    weight_decay: float = Field(0.01, ge=0, description="AdamW's, but for biases and norms")
    max_grad_norm: float | None = Field(1.0, gt=0, description="gradients are scaled down to this norm")
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 on a GPU that has it, else fp32")
    keep: Literal["last", "best"] = Field(
        "last", description="weights of the last epoch, or of the lowest validation loss"
    )
    checkpoint_every: int = Field(
        200, ge=1, description="updates between checkpoints; one is written after every epoch too"
    )
    workers: int = Field(0, ge=0, description="processes that prepare batches; no number changes the result")
    shard: bool = Field(
        False,
        description="of several processes, each keeps a slice of the weights, gradients and optimiser (FSDP), for "
        "encoders too large for one",
    )


class Sequence(Config):
    """How the inputs are laid out."""

    close: bool = Field(False, description="a last [SEP] closes the inputs; the paper writes none")


class Step(Config):
    """One row of the table: which inputs it reads, what it learns, where it starts."""

    inputs: tuple[str, ...] = Field(min_length=1, description="names of inputs")
    learn: tuple[str, ...] = Field(
        min_length=1, description='names of inputs, or "backbone" (its masked-LM head included)'
    )
    start: str = Field(PRETRAINED, description='"pretrained", or the step whose weights it goes on from')
    training: Training = Field(Training(), description="the recipe's training settings, with this step's own")
    data: SerializeAsAny[DatasetConfig] | None = Field(
        None, description="what it learns from, a table like [data]; by default the recipe's own data"
    )
    evaluate: bool = Field(
        True,
        description="write for the recipe's data.evaluate and score it, a row of the table; false for a warm start",
    )


class Recipe(Config):
    """Everything a run is made of. Its JSON is the whole truth: a run can be repeated from it."""

    name: str = Field(min_length=1, pattern=f"^{NAME}$", strict=True, description="names the run folder")
    description: str = Field("", strict=True)
    profile: str | None = Field(None, pattern=f"^{NAME}$", strict=True)
    seed: int = Field(0, ge=0, strict=True, description="all randomness comes from it")
    output: str = Field("runs", strict=True, description="where run folders go")
    backbone: SerializeAsAny[BackboneConfig]
    inputs: dict[str, SerializeAsAny[EmbedderConfig]] = Field(
        min_length=1, description="embedders, in the order of the sequence"
    )
    generator: SerializeAsAny[GeneratorConfig]
    sequence: Sequence = Sequence()
    training: Training = Training()
    steps: dict[str, Step] = Field(min_length=1)
    data: SerializeAsAny[DatasetConfig]
    decoding: Decoding = Decoding()
    metrics: dict[str, SerializeAsAny[MetricConfig]] = {}
    probes: dict[str, SerializeAsAny[ProbeConfig]] = {}

    def chain(self, step: str) -> list[str]:
        """The step and those it starts from, the first one first."""
        found = [step]
        while (start := self.steps[found[-1]].start) != PRETRAINED:
            found.append(start)
        return found[::-1]

    def ordered(self, only: str | None = None) -> list[str]:
        """Steps in an order in which every one comes after the one it starts from."""
        order: dict[str, None] = {}
        for step in [only] if only else self.steps:
            order.update(dict.fromkeys(self.chain(step)))
        return list(order)

    def identity(self) -> dict[str, Any]:
        """The recipe without the keys that cannot change a result; two runs with equal ones are the same run."""
        tables = self.model_dump(mode="json", exclude={"output": True, "description": True})
        for training in [tables["training"], *(step["training"] for step in tables["steps"].values())]:
            for key in ("workers", "checkpoint_every", "shard"):
                training.pop(key)
        return tables


PARTS = {"backbone": "backbone", "generator": "generator", "data": "dataset"}  # table -> kind of the part it describes
NAMED_PARTS = {"inputs": "embedder", "metrics": "metric", "probes": "probe"}  # table of named tables -> kind
THEN = {"training": {"bucket": 1}}  # what runs did that are older than a key, where its default is something else
TABLES: dict[str, type[Config]] = {"sequence": Sequence, "training": Training, "decoding": Decoding}


def load(
    path: Path, registry: Registry, profile: str | None = None, sets: tuple[str, ...] = ()
) -> tuple[Recipe, Layered]:
    """A recipe file with its profile and settings laid over it, and where every value came from. Raises RecipeError
    with every mistake found, a line each."""
    layers, chosen = read(path, profile, sets)
    return resolve(layers, registry, chosen, str(path)), layers


def from_json(text: str, registry: Registry, source: str) -> Recipe:
    """The recipe that a run folder keeps; keys that were not there yet when it was written have what they meant then.
    `source` names the file in errors."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise RecipeError(f"{source}: not JSON: {error}") from None
    if not isinstance(values, dict):
        raise RecipeError(f"{source}: not a recipe")
    profile = values.pop("profile", None)
    for table, keys in THEN.items():
        if isinstance(own := values.setdefault(table, {}), dict):
            values[table] = {**keys, **own}
    return resolve(Layered(values, {}), registry, profile, source)


def part_from(kind: str, name: str, sets: tuple[str, ...], registry: Registry) -> PartConfig:
    """One part by its name and `key=value` settings, outside of any recipe. Raises RecipeError."""
    layers = Layered()
    for setting in sets:
        layers.lay(*setting_table(setting))
    check = _Check(layers, registry, f"--type {name}")
    part = check.part(kind, {**layers.values, "type": name}, ())
    if part is None:
        raise RecipeError("\n".join(check.problems))
    return part


def resolve(layers: Layered, registry: Registry, profile: str | None, source: str) -> Recipe:
    """Checked parts and steps from merged tables."""
    check = _Check(layers, registry, source)
    values = dict(layers.values)
    built: dict[str, Any] = {"profile": profile}
    for table, kind in PARTS.items():
        if table in values:
            built[table] = check.part(kind, values.pop(table), (table,))
    for table, kind in NAMED_PARTS.items():
        named = check.tables(values.pop(table, {}), (table,))
        built[table] = named and {
            name: part if part is None else check.part(kind, part, (table, name)) for name, part in named.items()
        }
    built["inputs"] = built["inputs"] and {name: _reading(config, name) for name, config in built["inputs"].items()}
    training = values.get("training", {})
    for table, cls in TABLES.items():
        built[table] = check.table(cls, values.pop(table, {}), (table,))
    steps = check.tables(values.pop("steps", {}), ("steps",))
    whole = training if built["training"] is not None else {}  # a mistake in there has been told, once is enough
    built["steps"] = steps and {
        name: step if step is None else check.step(step, whole, ("steps", name)) for name, step in steps.items()
    }
    check.top({**values, **built})
    check.fits(built)
    if check.problems:
        raise RecipeError("\n".join(sorted(check.problems, key=_line)))
    return Recipe(**values, **built)


def _line(problem: str) -> tuple[str, int]:
    """Problems are told in the order of their lines."""
    file, _, rest = problem.partition(":")
    number = rest.partition(":")[0]
    return file, int(number) if number.isdigit() else 0


def _reading(config: EmbedderConfig | None, name: str) -> EmbedderConfig | None:
    return config.model_copy(update={"reads": (name,)}) if config is not None and not config.reads else config


class _Check:
    """Gathers problems instead of stopping at the first."""

    def __init__(self, layers: Layered, registry: Registry, source: str) -> None:
        self.layers, self.registry, self.source = layers, registry, source
        self.problems: list[str] = []

    def problem(self, path: Key, text: str) -> None:
        place = self.layers.place(path) or self.source
        self.problems.append(": ".join(filter(None, (place, ".".join(path), text))))

    def tables(self, value: Any, path: Key) -> dict[str, Any] | None:
        """A table of named tables. None stands for what is no table: told here, and not once more by what builds on
        it."""
        if not isinstance(value, dict):
            return self.problem(path, "must be a table")
        for name, inner in value.items():
            if not re.fullmatch(NAME, name) or (
                path == ("inputs",) and "." in name
            ):  # names become those of files and modules
                self.problem((*path, name), "a name is made of letters, digits, '_' and '-', a step's of '.' too")
            elif not isinstance(inner, dict):
                self.problem((*path, name), f"must be a table: write it as [{'.'.join(path)}.{name}]")
        return {name: inner if isinstance(inner, dict) else None for name, inner in value.items()}

    def part(self, kind: str, table: Any, path: Key) -> PartConfig | None:
        """The config of a part, by its `type`."""
        if not isinstance(table, dict):
            return self.problem(path, "must be a table")
        if not isinstance(table.get("type"), str):
            names = ", ".join(part.name for part in self.registry.of_kind(kind))
            return self.problem(path, f'has no type; write  type = "..."  with one of: {names or "none installed"}')
        try:
            config = self.registry.get(kind, table["type"]).config
        except PluginError as error:
            return self.problem((*path, "type"), str(error))
        nested = {name: inner for name, inner in nested_kinds(config).items() if table.get(name) is not None}
        parts = {name: self.part(inner, table[name], (*path, name)) for name, inner in nested.items()}
        if None in parts.values():
            return None
        return self.table(config, {name: value for name, value in table.items() if name not in nested}, path, parts)

    def table(self, cls: type[Config], table: Any, path: Key, parts: Mapping[str, PartConfig] | None = None) -> Any:
        """A config from a table; as JSON and strictly, so that "5" is no number, and a list may be a tuple."""
        if not isinstance(table, dict):
            return self.problem(path, "must be a table")
        try:
            if parts:
                return cls.model_validate({**table, **parts})
            return cls.model_validate_json(json.dumps(table, default=str), strict=True)
        except ValidationError as error:
            for mistake in error.errors():
                self.mistake(cls, mistake, path)

    def mistake(self, cls: type[Config], mistake: Mapping[str, Any], path: Key) -> None:
        place = (*path, *(str(name) for name in mistake["loc"]))
        if mistake["type"] == "extra_forbidden":
            self.problem(place, f"no such key{did_you_mean(place[-1], cls.model_fields)}")
        elif mistake["type"] == "missing":
            self.problem(place, "is missing")
        else:
            text = mistake["msg"].removeprefix("Value error, ").removeprefix("Input ")
            self.problem(place, text[:1].lower() + text[1:] if text[1:2].islower() else text)

    def step(self, table: dict[str, Any], training: Any, path: Key) -> Step | None:
        own = table.get("training", {})
        if not isinstance(own, dict):
            return self.problem((*path, "training"), "must be a table")
        whole = (
            self.table(Training, {**training, **own}, (*path, "training"))
            if own
            else self.table(Training, training, ("training",))
        )
        parts = {"data": self.part("dataset", table["data"], (*path, "data"))} if table.get("data") is not None else {}
        step = self.table(
            Step, {name: value for name, value in table.items() if name not in ("training", "data")}, path
        )
        return (
            step.model_copy(update={"training": whole, **parts})
            if step and whole and None not in parts.values()
            else None
        )

    def top(self, values: dict[str, Any]) -> None:
        """The recipe's own keys."""
        try:
            Recipe.model_validate(values)
        except ValidationError as error:
            for mistake in error.errors():
                # parts and tables have been checked one by one; what is None there has been reported
                if len(mistake["loc"]) == 1 and values.get(mistake["loc"][0], "") is not None:
                    self.mistake(Recipe, mistake, ())

    def fits(self, built: Mapping[str, Any]) -> None:
        """Steps name inputs that exist and start from steps that exist, without going in a circle."""
        steps, inputs = built["steps"] or {}, built["inputs"] or {}
        for name, step in steps.items():
            if step is None:
                continue
            for key, known in (("inputs", [*inputs]), ("learn", [*inputs, "backbone"])):
                for wanted in getattr(step, key):
                    if wanted not in known and inputs:
                        self.problem(
                            ("steps", name, key),
                            f"there is no input '{wanted}'{did_you_mean(wanted, known)}; there are: {', '.join(known)}",
                        )
            for wanted in step.learn:
                if wanted in inputs and wanted not in step.inputs:
                    self.problem(
                        ("steps", name, "learn"), f"'{wanted}' is not among the step's inputs, so it cannot learn"
                    )
            if name == PRETRAINED:
                self.problem(
                    ("steps", name),
                    "a step's name is made of letters, digits, '_', '-' and '.', and is not 'pretrained'",
                )
            if len(set(step.inputs)) < len(step.inputs):
                self.problem(("steps", name, "inputs"), "an input is named twice")
            if step.start != PRETRAINED and step.start not in steps:
                self.problem(
                    ("steps", name, "start"),
                    f"there is no step '{step.start}'{did_you_mean(step.start, [*steps, PRETRAINED])}",
                )
            elif circle := _circle(steps, name):
                self.problem(("steps", name, "start"), f"goes in a circle: {' -> '.join(circle)}")


def _circle(steps: Mapping[str, Step | None], name: str) -> list[str]:
    """The steps from `name` back to itself by way of `start`; empty when they end."""
    trail, last = {name: None}, name
    while (step := steps.get(last)) is not None and step.start in steps:
        if step.start == name:
            return [*trail, name]
        if step.start in trail:
            return []
        last = step.start
        trail[last] = None
    return []
