"""Names in queries: match values to a step's inputs and labels; for errors: missing, unread names, what steps read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..configs import ObjectiveConfig
from ..errors import DataError, did_you_mean
from ..recipe.tables import GENERATOR, Recipe
from .query import PICTURE, Query, from_json

ADVICE = "add {name}=VALUE"  # for a missing value, in Python
COMMAND_ADVICE = 'add --input {name}=VALUE, or the field "{name}" in a JSONL file'


@dataclass(frozen=True)
class Bound:
    """The values of a query, matched to the inputs and labels of a step.

    query     the query
    inputs    input name -> field that it reads -> value
    labels    label -> value
    missing   names that the step needs and the query does not give
    unread    names that the query gives and the step does not read
    """

    query: Query
    inputs: Mapping[str, Mapping[str, Any]]
    labels: Mapping[str, Any] = field(default_factory=dict)
    missing: Sequence[str] = ()
    unread: Sequence[str] = ()


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

    def __init__(self, recipe: Recipe, step: str) -> None:
        self.recipe, self.step, self.advice = recipe, step, ADVICE
        self.inputs = {name: recipe.inputs[name] for name in recipe.steps[step].inputs}
        self._fields = {field_ for config in recipe.inputs.values() for field_ in config.fields}
        objective = _predicting_objective(recipe, step)
        self.filled = frozenset(objective.provides() if objective else ())
        self.required = [name for name, config in self.inputs.items() if not {*config.fields} <= self.filled]
        self.labels = _query_labels(recipe, step)
        self._needed = self.labels if objective else ()
        self.pictures = [name for name, config in self.inputs.items() if config.takes == "picture"]
        texts_first = sorted(self.inputs.items(), key=lambda item: item[1].takes not in (None, "text"))
        self.takes = {key: config.takes for name, config in texts_first for key in (name, *config.fields)}
        labels = [label for name in recipe.steps for label in _query_labels(recipe, name)]
        self.known = list(dict.fromkeys([*recipe.inputs, *sorted(self._fields), *labels]))

    @property
    def reads(self) -> str:
        """The step's inputs, as text."""
        return " and ".join(self.inputs)

    def bind(self, query: Query) -> Bound:
        """Match the query's values. Raises DataError for a name that no step of the recipe knows, and for a duplicate
        value."""
        self.check_known(query)
        given = {name: value for name, value in query.inputs.items() if value is not None}
        values: dict[str, dict[str, Any]] = {}
        used: set[str] = set()
        for name, config in self.inputs.items():
            for field_ in config.fields:
                key = name if name in given and len(config.fields) == 1 else field_
                if key in given and (key == name or self._gives_field(key)):
                    values.setdefault(name, {})[field_] = from_json(given[key]) if field_ in self.filled else given[key]
                    used.add(key)
        if PICTURE in given and PICTURE not in self.known and self._reads_one_picture():
            for name in self.pictures:  # inputs that read one field, such as two networks' features of a picture
                if name in values:
                    raise DataError(
                        f"{query.where}: got two values for '{name}', by name and as the picture; remove one"
                    )
                values[name] = {self.inputs[name].fields[0]: given[PICTURE]}
            used.add(PICTURE)
        labels = {name: from_json(given[name]) for name in self.labels if name in given}
        missing = [
            name if len(self.inputs[name].fields) == 1 else field_
            for name in self.required
            for field_ in self.inputs[name].fields
            if field_ not in values.get(name, {})
        ]
        if {*values} <= {*self.required}:  # a label may also be given under the name of the input that it fills
            missing += [name for name in self._needed if name not in labels]
        unread = [name for name in given if name not in {*used, *labels}]
        return Bound(query, values, labels, list(dict.fromkeys(missing)), unread)

    def bind_exactly(self, query: Query) -> Bound:
        """Match the query's values, which must be exactly the step's. Raises DataError for missing and unread names."""
        bound = self.bind(query)
        if PICTURE in bound.unread and len(self.pictures) > 1:
            raise DataError(
                f"{query.where}: step '{self.step}' has {len(self.pictures)} inputs for pictures; name the input of "
                f"the picture: {' or '.join(f'{name}=PICTURE' for name in self.pictures)}"
            )
        if bound.missing:
            name = bound.missing[0]
            raise DataError(
                f"{query.where}: '{name}' is missing: step '{self.step}' reads {self.reads}; "
                f"{self.advice.format(name=name)}"
            )
        if bound.unread:
            what = "the picture" if bound.unread[0] == PICTURE else f"'{bound.unread[0]}'"
            steps = [f"'{name}' reads {' and '.join(step.inputs)}" for name, step in self.recipe.steps.items()]
            raise DataError(
                f"{query.where}: step '{self.step}' does not read {what}; leave it out, or choose another step: "
                f"{'; '.join(steps)}"
            )
        return bound

    def reads_exactly(self, query: Query) -> bool:
        """Whether a query gives exactly what the step reads. Raises DataError, as `bind`."""
        bound = self.bind(query)
        return not (bound.missing or bound.unread)

    def check_known(self, query: Query) -> None:
        """Raises DataError for a name that the recipe does not have, and for the name of an input of several fields."""
        for name in query.inputs:
            reads = self.recipe.inputs[name].fields if name in self.recipe.inputs else ()
            if len(reads) > 1 and name not in self._fields:
                raise DataError(f"{query.where}: '{name}' reads {' and '.join(reads)}; give these fields separately")
            if name not in self.known and name != PICTURE:
                known = ", ".join(self.known)
                raise DataError(
                    f"{query.where}: unknown input {name!r:.60}{did_you_mean(name, self.known)}; available: {known}"
                )

    def _gives_field(self, name: str) -> bool:
        """Whether this name means a field: False if an input has the name but does not read the field."""
        return name not in self.inputs or name in self.inputs[name].fields

    def _reads_one_picture(self) -> bool:
        return len({self.inputs[name].fields[0] for name in self.pictures}) == 1


def _predicting_objective(recipe: Recipe, step: str) -> ObjectiveConfig | None:
    """The objective that makes a step's predictions; None for a step that writes texts."""
    predicts = recipe.predicts(step)
    return None if predicts is None or predicts[0] == GENERATOR else recipe.objectives[predicts[0]]


def _query_labels(recipe: Recipe, step: str) -> tuple[str, ...]:
    """The labels that a query to a step may give."""
    config = _predicting_objective(recipe, step) or recipe.generator
    return () if config is None else config.query_labels
