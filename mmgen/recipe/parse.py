"""The tables of a recipe as one `Recipe`: one validation finds every mistake of every part, each with its line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from ..configs import Config, DatasetConfig, GeneratorConfig, PartConfig, classes_in
from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError, RecipeError
from ..registry import Registry
from .fit import fit_problems
from .layers import Layered
from .messages import describe_mistake
from .names import Wrong, name_problems
from .paths import from_folder, map_paths
from .tables import NO_DATA, SOURCE_KEYS, NoData, Recipe, SourceConfig
from .toml_lines import Key

AnyConfig = TypeVar("AnyConfig", bound=Config)
FROM_START = ("inputs", "objectives", "data", "evaluate", "training")  # of a step that trains nothing


@dataclass(frozen=True)
class Parts:
    """The context of a validation: the parts that tables may name.

    generator  its table, which decides the options of decoding
    stored     whether the tables come from a finished run, or from an export, which has no data
    """

    registry: Registry
    generator: Any = None
    stored: bool = False

    def part(self, kind: type[PartConfig], table: Mapping[str, Any]) -> PartConfig:
        """The config that a table's `type` names. Raises ValidationError."""
        if not isinstance(table.get("type"), str):
            names = ", ".join(self.registry.names(kind.kind)) or "(none installed)"
            raise _mistake((), f'has no type; write  type = "..."  with one of: {names}', table)
        if self.stored and kind is DatasetConfig and table["type"] == NO_DATA:
            return self.check(NoData, table)
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
    for file in plugin_files(layers):
        if file.name not in registry.files():
            advice = f"if you trust this file, add --plugin {file}, or in Python plugins=[{str(file)!r}]"
            raise RecipeError(
                f"{layers.place(('plugins',)) or source}: plugins: needs the parts in {file.name}; {advice}"
            )
    tables = {"decoding": {}, **_with_inherited(layers.values), "profile": profile}
    parts = Parts(registry, tables.get("generator"), stored)
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


def plugin_files(layers: Layered) -> list[Path]:
    """The Python files that a recipe names as plugins."""
    files, folder = layers.values.get("plugins"), layers.folder(("plugins",))
    texts = [text for text in files if isinstance(text, str)] if isinstance(files, list) else []
    return [Path(from_folder(text, folder)) for text in texts]


def problem_lines(problems: Iterable[Wrong], layers: Layered, source: str) -> list[str]:
    """A line for each problem, "my.toml:9: training.epochs: must be at least 1, not 0", sorted by file and line."""
    by_line = {}
    for path, text in problems:
        key = layers.key(path)
        place = layers.place(key) or source
        file, _, number = place.rpartition(":")
        order = (file, int(number)) if number.isdigit() else (place, 0)
        by_line[": ".join(filter(None, (place, ".".join(key), text)))] = order
    return sorted(by_line, key=lambda line: by_line[line])


def _with_inherited(values: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of a recipe, whose steps also have what they inherit, and their data as a list of sources."""
    steps = values.get("steps")
    if not isinstance(steps, dict):
        return dict(values)
    return {**values, "steps": {name: _filled(step, steps, values) for name, step in steps.items()}}


def _filled(step: Any, steps: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    """The table of a step with [training], with [decoding] if it has options, and with keys of its start."""
    if not isinstance(step, dict):
        return step
    untrained = step.get("train") == []
    step = _as_its_start(step, steps)
    step = {**step, "training": _merged(values.get("training"), step.get("training", {}))}
    if step.get("decoding"):
        step["decoding"] = _merged(values.get("decoding"), step["decoding"])
    if (data := step.pop("data", None)) is not None:
        step["data"] = [_source(entry) for entry in data] if isinstance(data, list) else [{"data": data}]
    if untrained and isinstance(inputs := values.get("inputs"), dict):
        step.setdefault("inputs", [*inputs])  # without a start, only `start` is the mistake
    return step


def _as_its_start(step: dict[str, Any], steps: Mapping[str, Any], seen: tuple[Any, ...] = ()) -> dict[str, Any]:
    """The table of a step; of one that trains nothing, with the keys of the step that it starts from."""
    start = steps.get(str(step.get("start")))
    if step.get("train") != [] or not isinstance(start, dict) or start in seen:
        return step
    below = _as_its_start(start, steps, (*seen, start))
    training = _merged(below.get("training"), step.get("training", {}))
    return {**{key: below[key] for key in FROM_START if key in below}, **step, "training": training}


def _merged(below: Any, above: Any) -> Any:
    """A table over another; what is not a table is a mistake of its own."""
    return {**(below if isinstance(below, dict) else {}), **above} if isinstance(above, dict) else above


def _source(entry: Any) -> Any:
    """An entry of a list of data sets, with the keys of the data set in a table `data`."""
    if not isinstance(entry, dict):
        return entry
    own = {key: value for key, value in entry.items() if key in SOURCE_KEYS}
    return {**own, "data": {key: value for key, value in entry.items() if key not in SOURCE_KEYS}}
