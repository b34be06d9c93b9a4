"""What a query gives to each input of a run, what a step lacks of it, and what a step does not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..configs import EmbedderConfig, FeaturesConfig, ObjectiveConfig
from ..errors import DataError
from ..parts import Record
from ..reading.text import LONGEST
from ..recipe.tables import GENERATOR, Recipe
from ..registry import did_you_mean
from .query import Query, as_picture

PICTURE = ""  # the name of `Query.picture` among the names of what is given


@dataclass(frozen=True)
class Given:
    """A value for one field of one input.

    name  what the query calls it: an input, a field, or PICTURE
    """

    name: str
    value: Any


ByInput = Mapping[str, Mapping[str, Given]]  # input -> field that it reads -> value


def by_input(recipe: Recipe, query: Query) -> ByInput:
    """A value by the input's own name comes first, then one by the field that the input reads, then the picture for
    inputs of stored features. Raises DataError for an unknown name, and for a value that no input is left for."""
    _refuse_unknown(recipe, query)
    _refuse_endless(query)
    found: dict[str, dict[str, Given]] = {}
    for name, config in recipe.inputs.items():
        for field in config.reads:
            own = name if len(config.reads) == 1 else field
            for key in dict.fromkeys((own, field, PICTURE)):
                value = _value(recipe, query, name, field, key)
                if value is not None:
                    found.setdefault(name, {})[field] = Given(key, value)
                    break
    for key in names(query):
        if key not in used(found, recipe.inputs) and key not in _labels_known(recipe):
            if key == PICTURE and not any(isinstance(config, FeaturesConfig) for config in recipe.inputs.values()):
                raise DataError(f"{query.where}: no input reads a picture; there are: {', '.join(recipe.inputs)}")
            raise DataError(f"{query.where}: {called(key)} is given twice, by another name too; leave one out")
    return found


def inputs_asked(recipe: Recipe, step: str) -> tuple[str, ...]:
    """The inputs of a step that a query must give: what predicts may fill others."""
    objective = _predicting(recipe, step)
    filled = set(objective.fills()) if objective else set()
    return tuple(name for name in recipe.steps[step].inputs if not set(recipe.inputs[name].reads) <= filled)


def labels_asked(recipe: Recipe, step: str) -> tuple[str, ...]:
    """Labels by which a query may tell what is asked: the choices, the phrase."""
    objective = _predicting(recipe, step)
    return tuple(name for name in objective.labels if name not in _fields(recipe)) if objective else ()


def may_be_read(recipe: Recipe, step: str) -> dict[str, EmbedderConfig]:
    """Fields that a query may give beside a step's inputs (which words mean which region) -> who reads them."""
    configs = [recipe.inputs[name] for name in recipe.steps[step].inputs]
    return {field: config for config in configs for field in config.may_read()}


def may_fill(recipe: Recipe, step: str) -> frozenset[str]:
    """Those of such fields that each row of the step's objective has of its own: a query gives a list of them."""
    objective = _predicting(recipe, step)
    return frozenset(objective.fills() if objective else ())


def _predicting(recipe: Recipe, step: str) -> ObjectiveConfig | None:
    """The objective that makes a step's predictions; None where it writes."""
    predicts = recipe.predicts(step)
    return None if predicts is None or predicts[0] == GENERATOR else recipe.objectives[predicts[0]]


def _labels_known(recipe: Recipe) -> list[str]:
    """Names that a query may give and that are no input's: labels, and fields that are read where they are there."""
    asked = [name for step in recipe.steps for name in labels_asked(recipe, step)]
    return list(dict.fromkeys([*asked, *(name for config in recipe.inputs.values() for name in config.may_read())]))


def _fields(recipe: Recipe) -> set[str]:
    """Names of all inputs, and of the fields that they read."""
    return {*recipe.inputs, *(field for config in recipe.inputs.values() for field in config.reads)}


def _value(recipe: Recipe, query: Query, name: str, field: str, key: str) -> Any:
    """What the query gives under `key` to a field of the input `name`; None where that is not for this input."""
    stored = [other for other, config in recipe.inputs.items() if isinstance(config, FeaturesConfig)]
    value = query.inputs.get(key) if key else query.picture
    if value is None or key == name or name in stored:
        return value
    if key == PICTURE and not any(field in recipe.inputs[other].reads for other in stored):
        return None
    # a key names a stored picture and whatever else belongs to it; pixels and features are for stored inputs alone
    shared = any(field in recipe.inputs[other].reads for other in stored)
    return None if shared and _is_picture(value, query) else value


def _is_picture(value: Any, query: Query) -> bool:
    if isinstance(value, Record | Mapping):
        return True
    try:
        return as_picture(value, query) is not None
    except ValueError:
        return True


def _refuse_unknown(recipe: Recipe, query: Query) -> None:
    known = {field for config in recipe.inputs.values() for field in config.reads}
    labels = _labels_known(recipe)
    for name in query.inputs:
        if name in labels:
            continue
        if name not in recipe.inputs and name not in known:
            there = list(dict.fromkeys([*recipe.inputs, *sorted(known), *labels]))
            raise DataError(
                f"{query.where}: no input is called '{name}'{did_you_mean(name, there)}; there are: {', '.join(there)}"
            )
        if name not in known and len(recipe.inputs[name].reads) != 1:
            reads = " and ".join(recipe.inputs[name].reads)
            raise DataError(f"{query.where}: '{name}' reads {reads}; give these by their names")


def _refuse_endless(query: Query) -> None:
    for name, value in query.inputs.items():
        if isinstance(value, str) and len(value) > LONGEST:
            raise DataError(f"{query.where}: '{name}' has {len(value):,} letters, and may have {LONGEST:,}")


def names(query: Query) -> list[str]:
    """Names of all that a query gives."""
    own = [name for name, value in query.inputs.items() if value is not None]
    return own if query.picture is None else [*own, PICTURE]


def called(name: str) -> str:
    """The name of what is given, for errors."""
    return "the picture" if name == PICTURE else f"'{name}'"


def used(given: ByInput, inputs: Sequence[str] | Mapping[str, Any]) -> set[str]:
    """Names of what these inputs read."""
    return {value.name for name in inputs for value in given.get(name, {}).values()}


def lacking(recipe: Recipe, step: str, given: ByInput) -> list[str]:
    """Names to give for what a step's inputs lack: an input's own, or its fields where it reads several."""
    missing = []
    for name in inputs_asked(recipe, step):
        reads = recipe.inputs[name].reads
        missing += [name if len(reads) == 1 else field for field in reads if field not in given.get(name, {})]
    return list(dict.fromkeys(missing))


def unread(recipe: Recipe, query: Query, step: str, given: ByInput) -> list[str]:
    """Names of what the query gives and a step does not read."""
    read = {*used(given, recipe.steps[step].inputs), *labels_asked(recipe, step), *may_be_read(recipe, step)}
    return [name for name in names(query) if name not in read]


def steps_read(recipe: Recipe, steps: Sequence[str]) -> str:
    """What each of these steps reads, for errors."""
    return "; ".join(f"'{name}' reads {' and '.join(recipe.steps[name].inputs)}" for name in steps)
