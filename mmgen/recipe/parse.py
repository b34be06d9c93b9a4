"""The tables of a recipe as one checked `Recipe`: one validation finds every mistake of every part, each with its line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from ..configs import Config, GeneratorConfig, PartConfig, classes_in
from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError, RecipeError
from ..registry import Registry
from .fit import fit_problems
from .layers import Layered
from .messages import describe_mistake
from .names import Wrong, name_problems
from .paths import from_folder, map_paths
from .tables import SOURCE_KEYS, Recipe, SourceConfig
from .toml_lines import Key

AnyConfig = TypeVar("AnyConfig", bound=Config)
FROM_START = ("inputs", "objectives", "data", "evaluate", "training")  # of a step that trains nothing


@dataclass(frozen=True)
class Parts:
    """The context of a validation: the parts that tables may name. `generator`: its table, which decides the options of
    decoding."""

    registry: Registry
    generator: Any = None

    def part(self, kind: type[PartConfig], table: Mapping[str, Any]) -> PartConfig:
        """The config that a table's `type` names. Raises ValidationError."""
        if not isinstance(table.get("type"), str):
            names = ", ".join(self.registry.names(kind.kind)) or "(none installed)"
            raise _mistake((), f'has no type; write  type = "..."  with one of: {names}', table)
        try:
            config = self.registry.get(kind.kind, table["type"]).config
        except PluginError as error:
            raise _mistake(("type",), str(error), table) from None
        return self.check(config, table)

    def decoding(self, table: Mapping[str, Any]) -> DecodingConfig:
        """The options of decoding in a table. Raises ValidationError, unless the generator is unknown."""
        cls = self.decoding_class()
        return self.check(cls, table) if cls else Decoding()

    def decoding_class(self) -> type[DecodingConfig] | None:
        """The class of the options of decoding; None if the generator is unknown."""
        if self.generator is None:
            return Decoding
        config = self.class_of(GeneratorConfig, self.generator)
        return None if config is GeneratorConfig else getattr(config, "decoding", Decoding)

    def check(self, cls: type[AnyConfig], table: Mapping[str, Any]) -> AnyConfig:
        """A config from a table, validated strictly as JSON: "5" is not a number, and a list becomes a tuple."""
        return cls.model_validate_json(json.dumps(table, default=str), strict=True, context=self)

    def class_of(self, kind: type[PartConfig], table: Any) -> type[PartConfig]:
        """The class of a part's config; the base class of its kind if that is unknown."""
        part = self.registry.names(kind.kind).get(str(table.get("type"))) if isinstance(table, dict) else None
        return part.config if part else kind

    def mistakes(self, cls: type[Config], table: Any, error: ValidationError) -> Iterator[Wrong]:
        """Where in a config's table something is wrong, and what."""
        for mistake in error.errors():
            *around, last = place = mistake["loc"] or ("",)
            if mistake["type"] == "too_short" and len(mistake["input"]) >= mistake["ctx"]["min_length"]:
                continue  # without the entries that are wrong
            holder, inner = self._class_at(cls, table, around), self._class_at(cls, table, place)
            about_key = mistake["type"] in ("missing", "extra_forbidden")
            more = SOURCE_KEYS if around[:1] == ["steps"] and around[4:] == ["data"] and last not in SOURCE_KEYS else ()
            path, text = describe_mistake(holder if about_key else inner, mistake, more)
            known = about_key or last in holder.model_fields or Layered(table).written(path) == path
            if holder is SourceConfig and path[-1:] == ("data",) or not known and path[-1:] == (str(last),):
                path = path[:-1]  # not a key of a recipe, but of `_source`, or pydantic's name of a check
            yield path, text

    def _class_at(self, cls: type[Config], table: Any, place: Sequence[int | str]) -> type[Config]:
        """The class of the table at a place, or around it."""
        for name in place:
            field = cls.model_fields.get(str(name))
            inner = classes_in(field.annotation) if field else []
            cls = next((c for c in inner if isinstance(c, type) and issubclass(c, Config)), cls)
            inside = dict(enumerate(table)) if isinstance(table, list) else table if isinstance(table, dict) else {}
            table = inside.get(name)
            if issubclass(cls, PartConfig):
                cls = self.class_of(cls, table)
            elif cls is DecodingConfig:
                cls = self.decoding_class() or cls
        return cls


def _mistake(place: Key, text: str, table: Mapping[str, Any]) -> ValidationError:
    error = PydanticCustomError("part", "{text}", {"text": text})
    return ValidationError.from_exception_data("part", [{"type": error, "loc": place, "input": table}])


def parse(layers: Layered, registry: Registry, profile: str | None, source: str, stored: bool = False) -> Recipe:
    """The checked recipe of merged tables. `source`: the place of values without one. `stored`: the tables come from a
    finished run or an export. Raises RecipeError with a line for every mistake."""
    tables = {"decoding": {}, **_with_inherited(layers.values), "profile": profile}
    parts = Parts(registry, tables.get("generator"))
    problems = [*name_problems(layers.values)]
    try:
        recipe = map_paths(
            parts.check(Recipe, tables),
            lambda text, either, at: from_folder(text, layers.folder(layers.written(at)), either),
        )
    except ValidationError as error:
        problems += _without_inherited([*parts.mistakes(Recipe, tables, error)], layers)
    else:
        if not problems:
            problems += fit_problems(recipe, stored)
            if not problems:
                return recipe
    raise RecipeError("\n".join(problem_lines(problems, layers, source)))


def _without_inherited(mistakes: Sequence[Wrong], layers: Layered) -> list[Wrong]:
    """Mistakes without those that a step has inherited, which are reported where they are written."""

    def is_own(path: Key) -> bool:
        size = 4 if path[2:3] in (("training",), ("decoding",)) else 3
        return path[:1] != ("steps",) or layers.written(path[:size]) == path[:size]

    own = {(path[2:] if path[:1] == ("steps",) else path, text) for path, text in mistakes if is_own(path)}
    return [(path, text) for path, text in mistakes if is_own(path) or (path[2:], text) not in own]


def problem_lines(problems: Iterable[Wrong], layers: Layered, source: str) -> list[str]:
    """A line for each problem, "my.toml:9: training.epochs: must be at least 1, not 0", sorted by file and line."""
    by_line = {}
    for path, text in problems:
        key = layers.key(path)
        place = layers.place(key) or source
        file, _, line = place.rpartition(":")
        by_line[": ".join(filter(None, (place, ".".join(key), text)))] = (file, int(line)) if line.isdigit() else (place, 0)
    return sorted(by_line, key=lambda line: by_line[line])


def _with_inherited(values: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe, whose steps also have what they inherit: the recipe's [training] and [decoding], and
    keys of the step that they start from if they train nothing. The data of a step are a list."""
    steps = values.get("steps")
    if not isinstance(steps, dict):
        return dict(values)
    filled = {}
    for name, table in steps.items():
        step = table
        if isinstance(step, dict):
            step = _as_its_start(step, steps, values.get("inputs"))
            for key in ("training", "decoding"):
                if key == "training" or step.get(key):
                    step = step | {key: _merged(values.get(key, {}), step.get(key, {}))}
            if step.get("data") is None:
                step.pop("data", None)
            else:
                step["data"] = _sources(step["data"])
        filled[name] = step
    return {**values, "steps": filled}


def _as_its_start(step: dict[str, Any], steps: Mapping[str, Any], inputs: Any) -> dict[str, Any]:
    """The table of a step; of one that trains nothing, with the keys of the step that it starts from."""
    start, passed = step, list[Any]()
    while isinstance(start, dict) and start.get("train") == [] and start not in passed:
        passed.append(start)
        start = steps.get(str(start.get("start")))
        below = {key: start[key] for key in FROM_START if key in start} if isinstance(start, dict) else {}
        training = {"training": _merged(below["training"], step["training"])} if {"training"} <= {*below} & {*step} else {}
        step = below | step | training
    return ({"inputs": [*(inputs or ())]} if passed else {}) | step  # without a start, only `start` is the mistake


def _merged(below: Any, above: Any) -> Any:
    """A table over another; what is not a table is a mistake of its own."""
    return {**(below if isinstance(below, dict) else {}), **above} if isinstance(above, dict) else above


def _sources(data: Any) -> Any:
    """The data of a step as a list of sources, each with its data set in a table `data`."""
    if not isinstance(data, list):
        return [{"data": data}]
    return [_source(entry) if isinstance(entry, dict) else entry for entry in data]


def _source(table: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "data": {key: value for key, value in table.items() if key not in SOURCE_KEYS},
        **{key: value for key, value in table.items() if key in SOURCE_KEYS},
    }
