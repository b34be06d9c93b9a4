"""Sources: the data sets that a step learns from, with what of the step each of them has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..errors import DataError
from ..tensors import Example


@dataclass(frozen=True)
class Source:
    """One of the data sets that a step learns from.

    examples    what is learnt
    validation  what progress is measured on; may be empty
    share       how much of every update it is, in ratio to the others' shares
    inputs      those of the step's inputs that its examples have; by default all
    objectives  those of the step's objectives that learn from it; by default all
    name        how people read it
    """

    examples: Sequence[Example]
    validation: Sequence[Example] = ()
    share: float = 1.0
    inputs: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    name: str = ""


def check_ids(step: str, sources: Mapping[str, Source]) -> None:
    """Raises DataError where two sources have an example of one id: what is drawn for an example follows from it."""
    owner: dict[str, str] = {}
    for name, source in sources.items():
        for example in source.examples if len(sources) > 1 else ():
            if (other := owner.setdefault(example.id, name)) != name:
                raise DataError(
                    f"steps.{step}.data: '{other}' and '{name}' both have an example '{example.id}'; give the examples "
                    "of one of them other ids"
                )
