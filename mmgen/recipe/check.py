"""Check merged tables: every mistake on one line, all of them at once."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, TypeVar

from pydantic import ValidationError

from ..configs import Config, DatasetConfig, FeaturesConfig, PartConfig, nested_kinds
from ..errors import PluginError
from ..registry import Registry, did_you_mean
from .layers import Layered
from .learnt import misfits, unjudged
from .messages import mistaken
from .paths import counted
from .renamed import new_name, with_new_names
from .tables import NAME, PRETRAINED, SOURCE_KEYS, WEIGHTS, Recipe, SourceConfig, Step
from .toml_lines import Key
from .training import Training, laid_over

AnyConfig = TypeVar("AnyConfig", bound=Config)


def _line(problem: str) -> tuple[str, int]:
    """Problems are told in the order of their lines."""
    file, _, rest = problem.partition(":")
    number = rest.partition(":")[0]
    return file, int(number) if number.isdigit() else 0


class _Check:
    """Gathers problems instead of stopping at the first. `stored`: the tables are those of a finished run, whose keys
    may have the names of its time."""

    def __init__(self, layers: Layered, registry: Registry, source: str, stored: bool = False) -> None:
        self.layers, self.registry, self.source, self.stored = layers, registry, source, stored
        self.problems: list[str] = []

    def problem(self, path: Key, text: str) -> None:
        place = self.layers.place(path) or self.source
        self.problems.append(": ".join(filter(None, (place, ".".join(path), text))))

    def tables(self, value: Any, path: Key) -> dict[str, Any] | None:
        """A table of named tables. None stands for what is no table: told here, and not once more by what builds on
        it."""
        if not isinstance(value, dict):
            self.problem(path, "must be a table")
            return None
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
            several = kind == "dataset" and isinstance(table, list)
            self.problem(path, "must be a table" + "; steps alone learn from a list of data sets" * several)
            return None
        if not isinstance(table.get("type"), str):
            names = ", ".join(self.registry.names(kind))
            self.problem(path, f'has no type; write  type = "..."  with one of: {names or "none installed"}')
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

    def table(self, cls: type[Config], table: Any, path: Key, parts: Mapping[str, PartConfig] = {}) -> Any:
        """A config from a table; as JSON and strictly, so that "5" is no number, and a list may be a tuple. `parts`:
        what is inside of it, checked already."""
        if not isinstance(table, dict):
            return self.problem(path, "must be a table")
        if self.stored:
            table = with_new_names(cls, table)
        table = counted(cls, table, lambda key: self.layers.folder((*path, key)))
        found, wrong = _checked(lambda: cls.model_validate_json(json.dumps(table, default=str), strict=True))
        if parts:
            wrong = [mistake for mistake in wrong if mistake["loc"] and mistake["loc"][0] not in parts]
            if not wrong:
                found, wrong = _checked(lambda: cls.model_validate({**table, **parts}))
        self.mistakes(cls, wrong, path)
        return None if wrong else found

    def mistakes(self, cls: type[Config], mistakes: Iterable[Any], path: Key) -> None:
        mistakes = list(mistakes)
        keys = [str(mistake["loc"][-1]) for mistake in mistakes if mistake["type"] == "extra_forbidden"]
        renamed = {new_name(key, cls.model_fields) for key in keys}
        for mistake in mistakes:
            if mistake["type"] == "missing" and mistake["loc"][-1] in renamed:
                continue  # the key is there, under its old name
            key, text = mistaken(cls, mistake)
            self.problem((*path, *key), text)

    def step(self, table: dict[str, Any], training: Any, path: Key) -> Step | None:
        own = table.get("training", {})
        if not isinstance(own, dict):
            self.problem((*path, "training"), "must be a table")
            return None
        whole = (
            self.table(Training, laid_over(training, own), (*path, "training"))
            if own
            else self.table(Training, training, ("training",))
        )
        parts = {"data": self.data(table["data"], (*path, "data"))} if table.get("data") is not None else {}
        step = self.table(
            Step, {name: value for name, value in table.items() if name not in ("training", "data")}, path
        )
        return (
            step.model_copy(update={"training": whole, **parts})
            if step and whole and None not in parts.values()
            else None
        )

    def data(self, table: Any, path: Key) -> PartConfig | tuple[SourceConfig, ...] | None:
        """What a step learns from: one data set, or a list of them."""
        if not isinstance(table, list):
            return self.part("dataset", table, path)
        sources = [self.mixed(entry, (*path, str(number))) for number, entry in enumerate(table)]
        return None if None in sources else tuple(filter(None, sources))

    def mixed(self, table: Any, path: Key) -> SourceConfig | None:
        """One entry of such a list."""
        if not isinstance(table, dict):
            self.problem(path, "must be a table")
            return None
        own = {name: value for name, value in table.items() if name in SOURCE_KEYS}
        data = self.part("dataset", {name: value for name, value in table.items() if name not in own}, path)
        source: SourceConfig | None = self.table(SourceConfig, own, path, {"data": data or DatasetConfig(type="")})
        return source if data else None

    def top(self, values: dict[str, Any]) -> Recipe | None:
        """The recipe, of its own keys and of parts and tables that are checked. None where there is a problem."""
        recipe, mistakes = _checked(lambda: Recipe.model_validate(values))
        for mistake in mistakes:
            # parts and tables have been checked one by one; what is None there has been reported
            if len(mistake["loc"]) == 1 and values.get(str(mistake["loc"][0]), "") is not None:
                self.mistakes(Recipe, [mistake], ())
        return recipe

    def fits(self, built: Mapping[str, Any]) -> None:
        """Steps name inputs that exist and start from steps that exist, without going in a circle; the generator has
        the options of decoding."""
        if built.get("generator") is not None and built["decoding"] is not None:
            for option, reason in built["generator"].refuses(built["decoding"]).items():
                self.problem(("decoding", option), reason)
            most, least = getattr(built["generator"], "max_tokens", None), built["decoding"].min_new_tokens
            if isinstance(most, int) and least >= most:
                self.problem(
                    ("decoding", "min_new_tokens"),
                    f"a text has {most} tokens at most with its end (generator.max_tokens); give {most - 1} or less",
                )
        for place, wrong in unjudged(built):
            self.problem(place, wrong)
        steps, inputs = built["steps"] or {}, built["inputs"] or {}
        self.features(inputs, {name for step in steps.values() if step is not None for name in step.inputs})
        for name, step in steps.items():
            if step is None:
                continue
            for key, known in (("inputs", [*inputs]), ("train", [*inputs, "backbone"])):
                for wanted in getattr(step, key):
                    if wanted not in known and inputs:
                        self.problem(
                            ("steps", name, key),
                            f"there is no input '{wanted}'{did_you_mean(wanted, known)}; there are: {', '.join(known)}",
                        )
            for wanted in step.train:
                if wanted in inputs and wanted not in step.inputs:
                    self.problem(("steps", name, "train"), f"'{wanted}' is not among the inputs of the step")
            for place, wrong in misfits(name, step, built):
                self.problem(place, wrong)
            if name == PRETRAINED:
                self.problem(
                    ("steps", name),
                    "a step's name is made of letters, digits, '_', '-' and '.', and is not 'pretrained'",
                )
            if len(set(step.inputs)) < len(step.inputs):
                self.problem(("steps", name, "inputs"), "an input is named twice")
            if step.weights is not None and not step.weights.strip():
                self.problem(("steps", name, "start"), f'name a file, a folder or a hub name behind "{WEIGHTS}"')
            if step.before is not None and step.before not in steps:
                self.problem(
                    ("steps", name, "start"),
                    f"there is no step '{step.start}'{did_you_mean(step.start, [*steps, PRETRAINED])}",
                )
            elif circle := _circle(steps, name):
                self.problem(("steps", name, "start"), f"goes in a circle: {' -> '.join(circle)}")

    def features(self, inputs: Mapping[str, PartConfig | None], read: Collection[str]) -> None:
        """Inputs that are read have features, or what makes them."""
        if "backbone" in inputs:
            self.problem(("inputs", "backbone"), "'backbone' means the encoder in a step's `train`; take another name")
        for name, config in inputs.items():
            if name not in read or not isinstance(config, FeaturesConfig) or config.features is not None:
                continue
            if config.extractor is None:
                self.problem(
                    ("inputs", name),
                    f'has no features; name a file of them (features = "..."), or what makes them: '
                    f"[inputs.{name}.extractor]",
                )
            elif config.extractor.source == "file":
                self.problem(
                    ("inputs", name, "extractor"),
                    f"{config.extractor.type} reads published files, not pictures; fill a store with `mmgen features "
                    f"import --type {config.extractor.type}`, and name it: inputs.{name}.features",
                )


def _checked(validate: Callable[[], AnyConfig]) -> tuple[AnyConfig | None, list[Any]]:
    """What pydantic makes of values, or its errors."""
    try:
        return validate(), []
    except ValidationError as error:
        return None, list(error.errors())


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
