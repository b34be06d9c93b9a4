"""Check the merged tables of a recipe, one by one and their references; every mistake is a line."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from ..configs import Config, DatasetConfig, FeaturesConfig, GeneratorConfig, PartConfig, nested_kinds
from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError
from ..registry import Registry, did_you_mean
from .layers import Layered
from .messages import describe_mistake
from .paths import resolve_paths
from .step_objectives import objective_errors, unscored_metrics, unsupported_training, untrained_errors
from .tables import EXPORT, GENERATOR, NAME, PRETRAINED, SOURCE_KEYS, WEIGHTS, Recipe, SourceConfig, Step
from .toml_lines import Key
from .training import Training, merge_training

AnyConfig = TypeVar("AnyConfig", bound=Config)


class _Check:
    """Collects all problems instead of stopping at the first. `stored`: the tables come from a finished run."""

    def __init__(self, layers: Layered, registry: Registry, source: str, stored: bool = False) -> None:
        self.layers, self.registry, self.source, self.stored = layers, registry, source, stored
        self.problems: list[str] = []

    def problem(self, path: Key, text: str) -> None:
        place = self.layers.place(path) or self.source
        self.problems.append(": ".join(filter(None, (place, ".".join(path), text))))

    def tables(self, value: Any, path: Key) -> dict[str, Any] | None:
        """A table of named tables. A value that is not a table is reported here and becomes None, so that later checks
        skip it."""
        if not isinstance(value, dict):
            self.problem(path, "must be a table")
            return None
        for name, inner in value.items():
            if not re.fullmatch(NAME, name) or (
                path == ("inputs",) and "." in name
            ):  # names become those of files and modules
                self.problem(
                    (*path, name), "a name may contain only letters, digits, '_' and '-'; the name of a step also '.'"
                )
            elif not isinstance(inner, dict):
                self.problem((*path, name), f"must be a table: write it as [{'.'.join(path)}.{name}]")
        return {name: inner if isinstance(inner, dict) else None for name, inner in value.items()}

    def part(self, kind: str, table: Any, path: Key) -> PartConfig | None:
        """The config of a part, by its `type`."""
        if not isinstance(table, dict):
            several = kind == "dataset" and isinstance(table, list)
            self.problem(path, "must be a table" + "; only a step can train on a list of data sets" * several)
            return None
        if not isinstance(table.get("type"), str):
            names = ", ".join(self.registry.names(kind))
            self.problem(path, f'has no type; write  type = "..."  with one of: {names or "(none installed)"}')
            return None
        try:
            config = self.registry.get(kind, table["type"]).config
        except PluginError as error:
            self.problem((*path, "type"), str(error))
            return None
        nested = {name: inner for name, inner in nested_kinds(config).items() if table.get(name) is not None}
        checked = {name: self.part(inner, table[name], (*path, name)) for name, inner in nested.items()}
        parts = {name: part for name, part in checked.items() if part is not None}
        if len(parts) < len(nested):
            return None
        part: PartConfig | None = self.table(
            config, {name: value for name, value in table.items() if name not in nested}, path, parts
        )
        return part

    def table(
        self, cls: type[Config], table: Any, path: Key, parts: Mapping[str, PartConfig] = {}, keys: str = ""
    ) -> Any:
        """A config from a table, validated strictly as JSON: "5" is not a number, and a list becomes a tuple. `parts`:
        configs inside the table that are already checked. `keys`: see `describe_mistake`."""
        if not isinstance(table, dict):
            return self.problem(path, "must be a table")
        table = resolve_paths(cls, table, lambda key: self.layers.folder((*path, key)))
        config, wrong = _config_or_errors(lambda: cls.model_validate_json(json.dumps(table, default=str), strict=True))
        if parts:
            wrong = [mistake for mistake in wrong if mistake["loc"] and mistake["loc"][0] not in parts]
            if not wrong:
                config, wrong = _config_or_errors(lambda: cls.model_validate({**table, **parts}))
        self.mistakes(cls, wrong, path, keys)
        return None if wrong else config

    def mistakes(self, cls: type[Config], mistakes: Iterable[Any], path: Key, keys: str = "") -> None:
        for mistake in mistakes:
            in_list = issubclass(cls, DatasetConfig) and path[-1:] and path[-1].isdigit()
            key, text = describe_mistake(cls, mistake, SOURCE_KEYS if in_list else (), keys)
            self.problem((*path, *key), text)

    def decoding(self, table: Any, path: Key) -> DecodingConfig | None:
        """A table of decoding options, by the class that the recipe's generator names. None if that is unknown."""
        generator = self.layers.values.get("generator")
        if generator is None:
            plain: Decoding | None = self.table(Decoding, table, path)
            return plain
        name = generator.get("type") if isinstance(generator, dict) else None
        part = self.registry.names("generator").get(name) if isinstance(name, str) else None
        if part is None:
            return None
        cls = part.config.decoding if issubclass(part.config, GeneratorConfig) else Decoding
        keys = f"; the generator '{name}' has: {', '.join(cls.model_fields)}" if cls is not Decoding else ""
        options: DecodingConfig | None = self.table(cls, table, path, keys=keys)
        return options

    def step(self, table: dict[str, Any], built: Mapping[str, Any], path: Key) -> Step | None:
        """A step. `built`: the recipe's checked [training] and [decoding]; one with mistakes is None, and they are not
        reported again for the step."""
        tables = [name for name in ("training", "decoding") if built[name] is not None]
        below = {"training": {}, "decoding": {}, **{name: self.layers.values.get(name, {}) for name in tables}}
        parts: dict[str, Any] = {"training": built["training"] or Training()}
        for name in below:
            if not isinstance(table.get(name), dict | None):
                self.problem((*path, name), "must be a table")
                return None
        if overrides := table.get("training"):
            merged = merge_training(below["training"], overrides)
            parts["training"] = self.table(Training, merged, (*path, "training"))
        if overrides := table.get("decoding"):
            parts["decoding"] = self.decoding({**below["decoding"], **overrides}, (*path, "decoding"))
        if table.get("data") is not None:
            parts["data"] = self.data(table["data"], (*path, "data"))
        step = self.table(
            Step, {name: value for name, value in table.items() if name not in ("training", "decoding", "data")}, path
        )
        return step.model_copy(update=parts) if step and None not in parts.values() else None

    def data(self, table: Any, path: Key) -> PartConfig | tuple[SourceConfig, ...] | None:
        """The training data of a step: one data set, or a list of them."""
        if not isinstance(table, list):
            return self.part("dataset", table, path)
        sources = [self.mixture_entry(entry, (*path, str(number))) for number, entry in enumerate(table)]
        return None if None in sources else tuple(filter(None, sources))

    def mixture_entry(self, table: Any, path: Key) -> SourceConfig | None:
        """One entry of a list of data sets."""
        if not isinstance(table, dict):
            self.problem(path, "must be a table")
            return None
        source_keys = {name: value for name, value in table.items() if name in SOURCE_KEYS}
        data = self.part("dataset", {name: value for name, value in table.items() if name not in SOURCE_KEYS}, path)
        source: SourceConfig | None = self.table(
            SourceConfig, source_keys, path, {"data": data or DatasetConfig(type="")}
        )
        return source if data else None

    def top(self, values: dict[str, Any]) -> Recipe | None:
        """The recipe, from checked parts and tables and from its top-level keys. None if there is a problem."""
        recipe, mistakes = _config_or_errors(lambda: Recipe.model_validate(values))
        for mistake in mistakes:
            # parts and tables are checked already; a None among them has been reported
            place = mistake["loc"]  # empty for a key that is not valid Unicode
            if not place or (len(place) == 1 and values.get(str(place[0]), "") is not None):
                self.mistakes(Recipe, [mistake], ())
        return recipe

    def check_references(self, built: Mapping[str, Any]) -> None:
        """Check references: steps name inputs and steps that exist, without a cycle; the generator supports the
        backbone and the options of [decoding]."""
        backbone, generator = built.get("backbone"), built.get("generator")
        if backbone is not None and generator is not None and (unfit := generator.backbone_problem(backbone)):
            self.problem(("generator", "type"), unfit)
        for name, config in (built["inputs"] or {}).items():
            if backbone is not None and config is not None and (unfit := config.backbone_problem(backbone)):
                self.problem(("inputs", name, "type"), unfit)
        steps, inputs = built["steps"] or {}, built["inputs"] or {}
        own = [(("steps", name, "decoding"), step.decoding) for name, step in steps.items() if step is not None]
        for place, options in [(("decoding",), built["decoding"]), *own]:
            refused = built["generator"].option_errors(options) if built.get("generator") and options else {}
            for option, reason in refused.items():
                self.problem((*place, option), reason)
        if "generator" not in built and (step := next(_steps_that_write(built["steps"] or {}), None)):
            self.problem(
                ("generator",),
                f"is missing, and step '{step}' trains it: add a table [generator], or name the step's objectives",
            )
        for place, wrong in [*unscored_metrics(built), *unsupported_training(built)]:
            self.problem(place, wrong)
        default = self.layers.values.get("default_step")
        if isinstance(default, str) and default not in steps and steps:
            hint = did_you_mean(default, steps)
            self.problem(("default_step",), f"unknown step '{default}'{hint}; choose from: {', '.join(steps)}")
        self.features(inputs, {name for step in steps.values() if step is not None for name in step.inputs})
        for name, step in steps.items():
            if step is None:
                continue
            for key, known in (("inputs", [*inputs]), ("train", [*inputs, "backbone"])):
                for name_in_key in getattr(step, key):
                    if name_in_key not in known and inputs:
                        self.problem(
                            ("steps", name, key),
                            f"unknown input '{name_in_key}'{did_you_mean(name_in_key, known)}; choose from: "
                            f"{', '.join(known)}",
                        )
            for name_in_key in step.train:
                if name_in_key in inputs and name_in_key not in step.inputs:
                    self.problem(("steps", name, "train"), f"'{name_in_key}' is not one of the step's inputs")
            for place, wrong in [*objective_errors(name, step, built), *untrained_errors(name, step, steps)]:
                self.problem(place, wrong)
            if name == PRETRAINED:
                self.problem(
                    ("steps", name),
                    "'pretrained' is reserved: in `start` it means the weights of the encoder; choose another name",
                )
            if len(set(step.inputs)) < len(step.inputs):
                self.problem(("steps", name, "inputs"), "an input is listed twice; list each input once")
            if step.weights is not None and not step.weights.removeprefix(EXPORT).strip():
                prefix = EXPORT if step.weights.startswith(EXPORT) else WEIGHTS
                self.problem(("steps", name, "start"), f'write a file, a folder or a hub name after "{prefix}"')
            if step.before is not None and step.before not in steps:
                self.problem(
                    ("steps", name, "start"),
                    f"unknown step '{step.start}'{did_you_mean(step.start, [*steps, PRETRAINED])}",
                )
            elif circle := _cycle_of_starts(steps, name):
                self.problem(
                    ("steps", name, "start"), f"the steps start from each other in a cycle: {' -> '.join(circle)}"
                )

    def features(self, inputs: Mapping[str, PartConfig | None], read: Collection[str]) -> None:
        """Check that every input of a step has features, or an extractor to compute them."""
        if "backbone" in inputs:
            self.problem(
                ("inputs", "backbone"),
                "'backbone' is reserved: in a step's `train` it means the encoder; choose another name",
            )
        for name, config in inputs.items():
            if name not in read or not isinstance(config, FeaturesConfig) or config.features is not None:
                continue
            if self.stored and config.width is not None:  # of an export, whose model knows the features
                continue
            if config.extractor is None:
                self.problem(
                    ("inputs", name),
                    f'has no features; set features = "FILE", or add [inputs.{name}.extractor] to compute them',
                )
            elif config.extractor.source == "file":
                self.problem(
                    ("inputs", name, "extractor"),
                    f"{config.extractor.type} reads published files, not images; create a feature file with `mmgen "
                    f"features import --type {config.extractor.type}`, and set inputs.{name}.features to it",
                )


def _steps_that_write(steps: Mapping[str, Step | None]) -> Iterator[str]:
    """The steps that train the generator."""
    yield from (name for name, step in steps.items() if step is not None and GENERATOR in step.objectives)


def _config_or_errors(validate: Callable[[], AnyConfig]) -> tuple[AnyConfig | None, list[Any]]:
    """The config that pydantic validates, or pydantic's errors."""
    try:
        return validate(), []
    except ValidationError as error:
        return None, list(error.errors())


def _cycle_of_starts(steps: Mapping[str, Step | None], name: str) -> list[str]:
    """The steps from `name` back to itself along `start`; empty without a cycle."""
    trail, last = {name: None}, name
    while (step := steps.get(last)) is not None and step.start in steps:
        if step.start == name:
            return [*trail, name]
        if step.start in trail:
            return []
        last = step.start
        trail[last] = None
    return []
