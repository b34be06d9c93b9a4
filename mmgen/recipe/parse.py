"""The tables of a recipe as one `Recipe`: one validation finds every mistake of every part, each with its line."""

from __future__ import annotations

import contextlib
import copy
import json
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError, create_model

from ..configs import Config, DatasetConfig, PartConfig
from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError, RecipeError
from ..registry import Registry
from .fit import Wrong, fit_problems
from .layers import Layered
from .messages import describe_mistake, wrong_keys
from .paths import from_folder, map_paths
from .tables import GENERATOR, NO_DATA, NoData, Recipe, mistakes
from .toml_lines import Key
from .training import Training

AnyConfig = TypeVar("AnyConfig", bound=Config)


@dataclass(frozen=True)
class Parts:
    """The context of a validation: the parts that tables may name.

    tables  of the whole recipe
    """

    registry: Registry
    tables: Mapping[str, Any]

    def table(self, *path: str) -> Mapping[str, Any]:
        """A table of the recipe; empty if it is missing, or not a table."""
        table: Any = self.tables
        for name in path:
            table = table.get(name)
            table = table if isinstance(table, dict) else {}
        return table

    def part(self, kind: type[PartConfig], table: Mapping[str, Any]) -> PartConfig:
        """The config that a table's `type` names. Raises ValidationError."""
        name = table.get("type")
        if not isinstance(name, str):
            names = ", ".join(self.registry.names(kind.kind))
            raise mistakes((("type",), f'is missing; write  type = "..."  with one of: {names}'))
        if kind is DatasetConfig and name == NO_DATA:
            return self.read(NoData, table)
        try:
            config = self.registry.get(kind.kind, name).config
        except PluginError as error:
            raise mistakes((("type",), str(error))) from None
        return self.read(config, table)

    def nested(self, cls: type[AnyConfig], table: Mapping[str, Any]) -> AnyConfig:
        """The config of another table. Those of steps override [training] and [decoding], whose keys the generator
        decides. Raises ValidationError."""
        if cls is Training:
            table = {**self.table("training"), **table}
        if not issubclass(cls, DecodingConfig):
            return self.read(cls, table)
        generator = self.table(GENERATOR)
        part = self.registry.names(GENERATOR).get(str(generator.get("type")))
        options: Any = Decoding if not generator else getattr(part and part.config, "decoding", cls)
        return cls() if options is cls else self.read(options, {**self.table("decoding"), **table})

    def read(self, cls: type[AnyConfig], table: Mapping[str, Any]) -> AnyConfig:
        """A config from a table, validated strictly as JSON: "5" is not a number, and a list becomes a tuple. Raises
        ValidationError, with our own messages."""
        try:
            return cls.model_validate_json(json.dumps(table, default=str), strict=True, context=self)
        except ValidationError as error:
            wrong = list[Wrong]()
            for mistake in error.errors():
                if mistake["type"] == "too_short" and len(mistake["input"]) >= mistake["ctx"]["min_length"]:
                    continue  # without the entries that are wrong
                key, text = describe_mistake(cls, mistake)
                wrong.append((tuple(name for name in key if not name.endswith("]")), text))  # pydantic's "[key]"
            raise mistakes(*wrong, *self._hidden(cls, table, wrong)) from None

    def _hidden(self, cls: type[Config], table: Mapping[str, Any], wrong: Sequence[Wrong]) -> Iterator[Wrong]:
        """What a config says about its other keys, and hides as long as some are wrong; without messages that name one
        of these, or one that may be meant."""
        words = {*(key[0] for key, _ in wrong if key), *re.findall(r"mean '(\w+)'", str(wrong))}
        others = {name: value for name, value in table.items() if name not in words}
        try:
            if len(others) < len(table):
                self.read(cls, others)
        except ValidationError as error:
            yield from (p for p in wrong_keys(error) if words.isdisjoint(re.findall(r"\w+", str(p))))


def parse(layers: Layered, registry: Registry, source: str, stored: bool = False) -> Recipe:
    """The checked recipe of merged tables. `source`: the place of values without one. `stored`: the tables come from a
    finished run or an export. Raises RecipeError with a line for every mistake."""
    for file in plugin_files(layers):
        if file.name not in registry.files():
            advice = f"if you trust this file, add --plugin {file}, or in Python plugins=[{str(file)!r}]"
            raise RecipeError(f"{layers.opening(('plugins',), source)}needs the parts in {file.name}; {advice}")
    parts, tables = Parts(registry, layers.values), {"decoding": {}, **layers.values}
    with mistakes_in(layers, source):
        wrong = list[Wrong]()
        try:
            recipe = parts.read(Recipe, tables)
        except ValidationError as error:
            wrong = wrong_keys(error)
            try:
                recipe = _without(parts, tables, {layers.key(key) for key, _ in wrong})
            except ValidationError:  # there is no recipe without its wrong parts
                raise error from None
        recipe = map_paths(recipe, lambda text, either, at: from_folder(text, layers.folder(at), either))
        if wrong := [*wrong, *fit_problems(recipe, stored, lacking=bool(wrong))]:
            raise mistakes(*wrong)
    return recipe


def _without(parts: Parts, tables: Mapping[str, Any], wrong: Collection[Key]) -> Recipe:
    """A recipe without its wrong parts; a wrong table is False, and to read a key of it an error. Raises
    ValidationError."""
    right = copy.deepcopy({**tables})
    for table, *names in wrong:
        if names and table.endswith("s") and isinstance(right.get(table), dict):  # a part of several
            right[table].pop(names[0], None)
        else:
            right.pop(table, None)
        if table == "steps":
            right.pop("metrics", None)  # each scores any of the steps
    absent = {table for table, *_ in (*wrong, ("metrics",)) if not right.get(table)} & {*Recipe.model_fields}
    fields: Any = dict.fromkeys(absent, (Any, False))
    merged = {**tables, "training": right.get("training"), "decoding": right.get("decoding")}
    return replace(parts, tables=merged).read(create_model("Recipe", __base__=Recipe, **fields), right)


def plugin_files(layers: Layered) -> list[Path]:
    """The Python files that a recipe names as plugins."""
    files, folder = layers.values.get("plugins"), layers.folder(("plugins",))
    texts = [text for text in files if isinstance(text, str)] if isinstance(files, list) else []
    return [Path(from_folder(text, folder)) for text in texts]


@contextlib.contextmanager
def mistakes_in(layers: Layered, source: str) -> Iterator[None]:
    """Raises RecipeError with a line for each mistake, "my.toml:9: training.epochs: must be at least 1, not 0", sorted
    by file and line. `source`: the place of values without one."""
    try:
        yield
    except ValidationError as error:
        lines = {f"{layers.opening(key, source)}{message}" for key, message in wrong_keys(error)}
        raise RecipeError("\n".join(sorted(lines, key=_order))) from None


def _order(line: str) -> str:
    """Sorts lines by file and line."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), line)
