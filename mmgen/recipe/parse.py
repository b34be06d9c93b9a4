"""The tables of a recipe as one `Recipe`: one validation finds every mistake of every part, each with its line."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import PydanticCustomError

from ..configs import Config, DatasetConfig, PartConfig
from ..decoding import Decoding, DecodingConfig
from ..errors import PluginError, RecipeError
from ..registry import Registry
from .fit import Wrong, fit_problems
from .layers import Layered
from .messages import MISTAKE, describe_mistake
from .paths import from_folder, map_paths
from .tables import GENERATOR, NO_DATA, NoData, Recipe
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
            raise _error((("type",), f'is missing; write  type = "..."  with one of: {names}'))
        if kind is DatasetConfig and name == NO_DATA:
            return self.read(NoData, table)
        try:
            config = self.registry.get(kind.kind, name).config
        except PluginError as error:
            raise _error((("type",), str(error))) from None
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
            mistakes = list[Wrong]()
            for mistake in error.errors():
                if mistake["type"] == "too_short" and len(mistake["input"]) >= mistake["ctx"]["min_length"]:
                    continue  # without the entries that are wrong
                key, text = describe_mistake(cls, mistake)
                mistakes.append((tuple(name for name in key if not name.endswith("]")), text))  # pydantic's "[key]"
            raise _error(*mistakes) from None


def _error(*mistakes: Wrong) -> ValidationError:
    custom = [(key, PydanticCustomError(MISTAKE, "{text}", {"text": text})) for key, text in mistakes]
    return ValidationError.from_exception_data("recipe", [{"type": e, "loc": key, "input": None} for key, e in custom])


def parse(layers: Layered, registry: Registry, source: str, stored: bool = False) -> Recipe:
    """The checked recipe of merged tables. `source`: the place of values without one. `stored`: the tables come from a
    finished run or an export. Raises RecipeError with a line for every mistake."""
    for file in plugin_files(layers):
        if file.name not in registry.files():
            advice = f"if you trust this file, add --plugin {file}, or in Python plugins=[{str(file)!r}]"
            raise RecipeError(f"{layers.opening(('plugins',), source)}needs the parts in {file.name}; {advice}")
    with mistakes_in(layers, source):
        recipe = map_paths(
            Parts(registry, layers.values).read(Recipe, {"decoding": {}, **layers.values}),
            lambda text, either, at: from_folder(text, layers.folder(at), either),
        )
        if problems := [*fit_problems(recipe, stored)]:
            raise _error(*problems)
    return recipe


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
        opened = ((layers.opening(tuple(map(str, m["loc"])), source), m["msg"]) for m in error.errors())
        lines = {f"{opening}{message}" for opening, message in opened}
        raise RecipeError("\n".join(sorted(lines, key=_order))) from None


def _order(line: str) -> str:
    """Sorts lines by file and line."""
    return re.sub(r"\d+", lambda number: number[0].zfill(9), line)
