"""Names: by which a query gives values to one step of a run; what it lacks, and what the step does not read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..configs import FeaturesConfig, ObjectiveConfig
from ..errors import DataError, did_you_mean
from ..recipe.tables import GENERATOR, Recipe
from .query import Query

PICTURE = ""  # the name of `Query.picture` among names of values


@dataclass(frozen=True)
class Bound:
    """A query's values, sorted by what a step does with them.

    inputs    input name -> field that it reads -> value
    labels    label -> value
    optional  field that an input reads where it is there -> value
    missing   names that the step needs and the query does not give
    unread    names that the query gives and the step does not read
    """

    inputs: Mapping[str, Mapping[str, Any]]
    labels: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    missing: Sequence[str] = ()
    unread: Sequence[str] = ()


class StepNames:
    """What a query of one step may give, and by which names.

    A value under an input's name is for that input. A value under a field's name is for every input that reads the
    field and is not given by its own name; a field that is called like an input which does not read it cannot be given.
    A picture without a name is for the one input that takes pictures.

    inputs    the step's inputs
    required  those of them that a query must give: the objective that predicts fills the others itself
    labels    by which a query tells what is asked (the choices, the phrase)
    optional  field -> the config of the input that reads it of examples that have it
    filled    fields that each row of the objective has its own value of: a query gives a list
    """

    def __init__(self, recipe: Recipe, step: str) -> None:
        self.recipe, self.step = recipe, step
        self.inputs = {name: recipe.inputs[name] for name in recipe.steps[step].inputs}
        self._fields = {field_ for config in recipe.inputs.values() for field_ in config.fields}
        fields = {*recipe.inputs, *self._fields}
        objective = _objective(recipe, step)
        self.filled = frozenset(objective.fills() if objective else ())
        self.required = [name for name, config in self.inputs.items() if not {*config.fields} <= self.filled]
        self.labels = tuple(name for name in objective.labels if name not in fields) if objective else ()
        self.optional = {name: config for config in self.inputs.values() for name in config.optional_fields()}
        self.pictures = [name for name, config in self.inputs.items() if isinstance(config, FeaturesConfig)]
        objectives = filter(None, (_objective(recipe, name) for name in recipe.steps))
        labels = [label for objective in objectives for label in objective.labels if label not in fields]
        optional = [field_ for config in recipe.inputs.values() for field_ in config.optional_fields()]
        self._known = list(dict.fromkeys([*recipe.inputs, *sorted(self._fields), *labels, *optional]))

    def bind(self, query: Query) -> Bound:
        """The query's values. Raises DataError for a name that no step of the recipe knows, and for a value that is
        given twice."""
        given = {name: value for name, value in query.inputs.items() if value is not None}
        self.check_known(query)
        values: dict[str, dict[str, Any]] = {}
        used: set[str] = set()
        for name, config in self.inputs.items():
            for field_ in config.fields:
                key = name if name in given and len(config.fields) == 1 else field_
                if key in given and (key == name or self._gives_field(key)):
                    values.setdefault(name, {})[field_] = given[key]
                    used.add(key)
        if query.picture is not None and len(self.pictures) == 1:
            (name,) = self.pictures
            if name in values:
                raise DataError(f"{query.where}: '{name}' is given twice, by its name and as the picture; remove one")
            values[name] = {self.inputs[name].fields[0]: query.picture}
            used.add(PICTURE)
        labels = {name: given[name] for name in self.labels if name in given}
        optional = {name: given[name] for name in self.optional if name in given}
        missing = [
            name if len(self.inputs[name].fields) == 1 else field_
            for name in self.required
            for field_ in self.inputs[name].fields
            if field_ not in values.get(name, {})
        ]
        names = [*given, *([PICTURE] if query.picture is not None else [])]
        unread = [name for name in names if name not in {*used, *labels, *optional}]
        return Bound(values, labels, optional, list(dict.fromkeys(missing)), unread)

    def checked(self, query: Query) -> Bound:
        """The query's values, which are just those that the step reads. Raises DataError."""
        query.check()
        bound = self.bind(query)
        if PICTURE in bound.unread and len(self.pictures) > 1:
            raise DataError(
                f"{query.where}: the step '{self.step}' has {len(self.pictures)} inputs that take pictures; give the "
                f"picture by name: {' or '.join(f'{name}=PICTURE' for name in self.pictures)}"
            )
        if bound.missing:
            name = bound.missing[0]
            raise DataError(
                f"{query.where}: '{name}' is missing: the step '{self.step}' reads {self.reads}; give it with --input "
                f'{name}=VALUE, or as "{name}" in a line'
            )
        if bound.unread:
            raise DataError(
                f"{query.where}: {called(bound.unread[0])} is not read by the step '{self.step}'; leave it out, or "
                f"choose another step: {steps_read(self.recipe, list(self.recipe.steps))}"
            )
        return bound

    @property
    def reads(self) -> str:
        """The step's inputs, in words."""
        return " and ".join(self.inputs)

    def _gives_field(self, name: str) -> bool:
        """Whether a value of this name is a field's: not where an input is called so that does not read it."""
        return name not in self.inputs or name in self.inputs[name].fields

    def check_known(self, query: Query) -> None:
        """Raises DataError for a name that is nothing in the recipe, and for an input of several fields."""
        for name in query.inputs:
            reads = self.recipe.inputs[name].fields if name in self.recipe.inputs else ()
            if len(reads) > 1 and name not in self._fields:
                raise DataError(f"{query.where}: '{name}' reads {' and '.join(reads)}; give these by their names")
            if name not in self._known:
                there = ", ".join(self._known)
                raise DataError(
                    f"{query.where}: no input is called '{name}'{did_you_mean(name, self._known)}; there are: {there}"
                )


def _objective(recipe: Recipe, step: str) -> ObjectiveConfig | None:
    """The objective that makes a step's predictions; None where it writes."""
    predicts = recipe.predicts(step)
    return None if predicts is None or predicts[0] == GENERATOR else recipe.objectives[predicts[0]]


def called(name: str) -> str:
    """The name of a value, for errors."""
    return "the picture" if name == PICTURE else f"'{name}'"


def steps_read(recipe: Recipe, steps: Sequence[str]) -> str:
    """What each of these steps reads, for errors."""
    return "; ".join(f"'{name}' reads {' and '.join(recipe.steps[name].inputs)}" for name in steps)
