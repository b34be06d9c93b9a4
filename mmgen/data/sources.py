"""Sources: the data sets that a step is trained on, each with its share, inputs, objectives, and its collator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ..errors import DataError
from ..parts import Stream
from ..tensors import Batch, Example
from .collate import Collator
from .example_sizes import Measures
from .streams import StreamExamples

ExampleEpochs = Sequence[tuple[Example, int]]  # examples, each with the epoch of its source


@dataclass(frozen=True)
class Source:
    """One of the data sets that a step is trained on.

    examples    to train on
    validation  examples for the validation loss; may be empty
    share       of every update, relative to the shares of the other sources
    inputs      the step's inputs that its examples have; empty, which those of a recipe never are, means all
    objectives  the step's objectives that train on it; likewise
    name        for the log and for messages
    measures    the sizes of `examples`, where a run has measured them
    stream      what it is trained on instead of `examples`, which then are some of its first
    """

    examples: Sequence[Example]
    validation: Sequence[Example] = ()
    share: float = 1.0
    inputs: tuple[str, ...] = ()
    objectives: tuple[str, ...] = ()
    name: str = ""
    measures: Measures | None = None
    stream: Stream | None = None


@dataclass(frozen=True)
class DataStream:
    """A source and the collator of its examples."""

    source: Source
    collate: Collator

    @cached_property
    def examples(self) -> Sequence[Example] | StreamExamples:
        return StreamExamples(self.source.stream) if self.source.stream else self.source.examples

    def cut_in_two(self, example_epoch: tuple[Example, int]) -> list[tuple[Example, int]]:
        """A single example cut in two, or as one if the example cannot be cut."""
        return [(half, example_epoch[1]) for half in self.collate.halves(example_epoch[0])]

    def batch(self, examples: ExampleEpochs) -> Batch:
        """A batch of examples, each with the epoch of its source."""
        return self.collate([example for example, _ in examples], [epoch for _, epoch in examples])


def check_ids(step: str, sources: Mapping[str, Source]) -> None:
    """Raises DataError if two sources share an example's id: random draws for an example depend on the id."""
    owner: dict[str, str] = {}
    for name, source in sources.items():
        for example in source.examples if len(sources) > 1 else ():
            if (first_owner := owner.setdefault(example.id, name)) != name:
                raise DataError(
                    f"steps.{step}.data: '{first_owner}' and '{name}' both have an example with the id '{example.id}'; "
                    "change the ids of one of them"
                )
