"""Sources: the data sets that a step is trained on, each with its share, inputs, objectives, and its collator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..examples import Example
from .collate import Collator


@dataclass(frozen=True)
class Source:
    """One of the data sets that a step is trained on.

    examples    to train on
    validation  examples for the validation loss; may be empty
    share       of every update, relative to the shares of the other sources
    inputs      the step's inputs that its examples have; empty, which those of a recipe never are, means all
    objectives  the step's objectives that train on it; likewise
    name        for the log and for messages
    """

    examples: Sequence[Example]
    validation: Sequence[Example] = ()
    share: float = 1.0
    inputs: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    name: str = ""


@dataclass(frozen=True)
class DataStream:
    """A source and the collator of its examples."""

    source: Source
    collate: Collator
