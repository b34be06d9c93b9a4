"""Names in queries: match values to a step's inputs and labels; for errors: missing, unread names, what steps read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..configs import GeneratorConfig, ObjectiveConfig
from ..errors import DataError, did_you_mean
from ..recipe.tables import GENERATOR, Recipe
from .query import PICTURE, Query, from_json


@dataclass(frozen=True)
class Bound:
    """The values of a query, matched to the inputs and labels of a step.

    inputs    input name -> field that it reads -> value
    labels    label -> value
    missing   names that the step needs and the query does not give
    unread    names that the query gives and the step does not read
    """

    inputs: dict[str, dict[str, Any]]
    labels: Mapping[str, Any]
    missing: Sequence[str]
    unread: Sequence[str]

    @property
    def exact(self) -> bool:
        return not (self.missing or self.unread)


class StepNames:
    """The names that a query to one step may use.

    A value under an input's name is for that input. A value under a field's name is for every input that reads the
    field, unless the query names the input. If an input has the name of a field that it does not read, a query cannot
    give that field. "picture" is for the only input that takes pictures.

    inputs    the step's inputs
    required  the inputs that a query must give; the objective that predicts fills the other inputs
    labels    the labels that a query gives: all of them to a step that predicts (the choices), any to one that writes
    takes     name of an input, or of a field that it reads -> what a query gives (`EmbedderConfig.takes`)
    known     all names that a query to the run may use
    filled    fields with one value per row of the objective; a query gives a list
    advice    how the user gives a missing value, for messages; with {name}
    """

    advice = "add --input {name}=VALUE, the field '{name}' of a JSONL file, or in Python the key '{name}'"

    def __init__(self, recipe: Recipe, step: str) -> None:
        self.recipe, self.step = recipe, step
        self.inputs = {name: recipe.inputs[name] for name in recipe.steps[step].inputs}
        self.reads = " and ".join(self.inputs)  # in words
        objective = _answering_objective(recipe, step)
        self.filled = frozenset(objective.provides() if isinstance(objective, ObjectiveConfig) else ())
        self.required = [name for name, config in self.inputs.items() if not {*config.fields} <= self.filled]
        self.labels = objective.query_labels if objective else ()
        self._needed = self.labels if isinstance(objective, ObjectiveConfig) else ()
        self.pictures = [name for name, config in self.inputs.items() if config.takes == "picture"]
        self.takes = {field: config.takes for config in self.inputs.values() for field in config.fields}
        self.takes |= {name: config.takes for name, config in self.inputs.items()}
        names = [name for name, config in recipe.inputs.items() if name in config.fields or len(config.fields) == 1]
        fields = sorted({field for config in recipe.inputs.values() for field in config.fields})
        objectives = [_answering_objective(recipe, name) for name in recipe.steps]
        labels = [label for config in objectives if config for label in config.query_labels]
        self.known = list(dict.fromkeys([*names, *fields, *labels]))
        pictures = {self.inputs[name].fields for name in self.pictures}
        self._only_picture = len(pictures) == 1 and PICTURE not in self.known
        self._keys = {
            (name, field): self._keys_of(name, field) for name in self.required for field in self.inputs[name].fields
        }

    def _keys_of(self, name: str, field: str) -> list[str]:
        """The names under which a query may give a field of an input; the first that it uses counts."""
        if len(self.inputs[name].fields) > 1:
            return [field]
        read_by_namesake = field not in self.inputs or field in self.inputs[field].fields
        return [name, *[field] * read_by_namesake, *[PICTURE] * (self._only_picture and name in self.pictures)]

    def bind(self, query: Query) -> Bound:
        """Match the query's values. Raises DataError for a name that no step of the recipe knows."""
        given = {name: value for name, value in query.inputs.items() if value is not None}
        for name in given:
            if name not in self.known and name != PICTURE:
                known = ", ".join(self.known)
                raise DataError(
                    f"{query.where}: unknown input {name!r:.60}{did_you_mean(name, self.known)}; available: {known}"
                )
        labels = {name: from_json(given[name]) for name in self.labels if name in given}
        values: dict[str, dict[str, Any]] = {}
        missing, used = dict[str, None](), {*labels}
        for (name, field), keys in self._keys.items():
            if key := next((key for key in keys if key in given), ""):
                values.setdefault(name, {})[field] = given[key]
                used.add(key)
            else:
                missing[keys[0]] = None
        missing |= dict.fromkeys(name for name in self._needed if name not in labels)
        return Bound(values, labels, [*missing], [name for name in given if name not in used])

    def bind_exactly(self, query: Query) -> Bound:
        """Match the query's values, which must be exactly the step's. Raises DataError for missing and unread names."""
        bound = self.bind(query)
        if bound.missing:
            name = bound.missing[0]
            raise DataError(
                f"{query.where}: '{name}' is missing: step '{self.step}' reads {self.reads}; "
                f"{self.advice.format(name=name)}"
            )
        if bound.unread:
            steps = [f"'{name}' reads {' and '.join(step.inputs)}" for name, step in self.recipe.steps.items()]
            raise DataError(
                f"{query.where}: step '{self.step}' does not read '{bound.unread[0]}'; leave it out, or choose another "
                f"step: {'; '.join(steps)}"
            )
        return bound


def _answering_objective(recipe: Recipe, step: str) -> ObjectiveConfig | GeneratorConfig | None:
    """The objective that makes a step's predictions, or the generator of one that writes texts."""
    name = (recipe.predicts(step) or (GENERATOR,))[0]
    return recipe.generator if name == GENERATOR else recipe.objectives[name]
