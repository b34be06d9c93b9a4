"""Check mixtures: the data sets that a step learns from at once have what is asked of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..configs import DatasetConfig, ObjectiveConfig
from ..errors import did_you_mean
from .tables import SourceConfig, Step

Wrong = tuple[tuple[str, ...], str]  # place in the recipe, what is wrong and what to do


def unmixable(
    name: str,
    step: Step,
    inputs: Mapping[str, Any],
    objectives: Mapping[str, ObjectiveConfig],
    data: DatasetConfig | None,
) -> Iterator[Wrong]:
    """What is wrong with the list of data sets of a step. `inputs` and `objectives`: those of the step; `data`: the
    recipe's own."""
    place = ("steps", name, "data")
    if not step.own:
        yield place, "must not be empty; name a data set, or leave the key out to learn from [data]"
        return
    for number, data_set in enumerate(step.own):
        if (same := step.own.index(data_set)) < number:
            again = f"is data.{same} again, so ids of examples collide; write it once, with the shares added up"
            yield (*place, str(number)), again
    if unknown := [*_unknown(name, step)]:
        yield from unknown
        return
    sources = step.sources(step.own[0], inputs, objectives)
    for number, source in enumerate(sources.values()):
        if not source.objectives:
            read = ", ".join(source.inputs)
            yield (*place, str(number)), f"none of the step's objectives fits its inputs: {read}; leave it out"
    for each, config in objectives.items():
        if not any(each in source.objectives for source in sources.values()):
            why = config.misfits(inputs) or "no data set has all that it reads"
            yield ("steps", name, "objectives"), f"'{each}' learns from none of the step's data sets: {why}"
    yield from _too_rare(name, step, sources)
    if step.training.shard and len(sources) > 1:
        yield (
            ("steps", name, "training", "shard"),
            "processes that hold slices of a model pass through it together, and micro-batches of several data sets "
            "do not; learn this step without it",
        )
    yield from _unscored(name, step, sources, objectives, data)


def _unknown(name: str, step: Step) -> Iterator[Wrong]:
    """Inputs and objectives of a data set that the step does not have."""
    for number, source in enumerate(step.data if isinstance(step.data, tuple) else ()):
        for key, among in (("inputs", step.inputs), ("objectives", step.objectives)):
            for wanted in getattr(source, key):
                if wanted not in among:
                    hint, there = did_you_mean(wanted, among), ", ".join(among)
                    place = ("steps", name, "data", str(number), key)
                    yield place, f"'{wanted}' is not among the step's {key}{hint}; there are: {there}"


def _too_rare(name: str, step: Step, sources: Mapping[str, SourceConfig]) -> Iterator[Wrong]:
    """A first data set of which less than one pair falls to an update. Every update has one, so updates would grow, by
    as much as the other shares are larger."""
    shares, pairs = [source.share for source in sources.values()], step.training.batch_size
    if (own := pairs * shares[0] / sum(shares)) < 1:
        yield (
            ("steps", name, "data", "0", "share"),
            f"of the {pairs} pairs of an update {own:.2g} are of the first data set, and every update has one; raise "
            "its share or training.batch_size, or put another data set first",
        )


def _unscored(
    name: str,
    step: Step,
    sources: Mapping[str, SourceConfig],
    objectives: Mapping[str, ObjectiveConfig],
    data: DatasetConfig | None,
) -> Iterator[Wrong]:
    """What the first data set lacks, where the step is scored on it."""
    needed = [label for each, config in objectives.items() if config.gives for label in config.labels]
    lacks = data is not None and not set(needed) <= set(data.labels)
    if not step.evaluate or not (step.evaluate == "own" or lacks):
        return
    called, first = next(iter(sources.items()))
    absent = [f"input '{each}'" for each in step.inputs if each not in first.inputs]
    absent += [f"label '{each}'" for each in needed if each not in first.data.labels]
    if absent:
        yield (
            ("steps", name, "evaluate"),
            f"it is scored on the first of its data sets, '{called}', which has no {absent[0]}; put one that has it "
            "first, or write evaluate = false",
        )
