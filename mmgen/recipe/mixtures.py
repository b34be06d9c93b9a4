"""Check mixtures: the several data sets that train one step together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..configs import DatasetConfig, ObjectiveConfig
from ..errors import did_you_mean
from .tables import SourceConfig, Step

Wrong = tuple[tuple[str, ...], str]  # place in the recipe, what is wrong and what to do


def mixture_errors(
    name: str,
    step: Step,
    inputs: Mapping[str, Any],
    objectives: Mapping[str, ObjectiveConfig],
    data: DatasetConfig | None,
) -> Iterator[Wrong]:
    """Errors in the list of data sets of a step. `inputs` and `objectives`: those of the step; `data`: the recipe's
    [data]."""
    place = ("steps", name, "data")
    if not step.data_sets:
        yield place, "must not be empty; add a data set, or remove the key to train on [data]"
        return
    for number, data_set in enumerate(step.data_sets):
        if (same := step.data_sets.index(data_set)) < number:
            yield (
                (*place, str(number)),
                f"duplicate of data.{same}, so the ids of examples collide; keep one of the two, with the sum of both "
                "shares",
            )
    if unknown := [*_unknown_names(name, step)]:
        yield from unknown
        return
    sources = step.sources(step.data_sets[0], inputs, objectives)
    for number, source in enumerate(sources.values()):
        if not source.objectives:
            read = ", ".join(source.inputs)
            yield (
                (*place, str(number)),
                f"no objective of the step fits the inputs of this data set ({read}); remove the data set",
            )
    for objective, config in objectives.items():
        if not any(objective in source.objectives for source in sources.values()):
            why = config.errors(inputs) or "no data set has all inputs that it reads"
            yield ("steps", name, "objectives"), f"no data set of the step trains '{objective}': {why}"
    yield from _share_errors(name, step, sources)
    yield from _evaluate_errors(name, step, sources, objectives, data)


def _unknown_names(name: str, step: Step) -> Iterator[Wrong]:
    """Names under `inputs` and `objectives` of a data set that the step does not have."""
    for number, source in enumerate(step.data if isinstance(step.data, tuple) else ()):
        for key, step_names in (("inputs", step.inputs), ("objectives", step.objectives)):
            for part in getattr(source, key):
                if part not in step_names:
                    hint, choices = did_you_mean(part, step_names), ", ".join(step_names)
                    place = ("steps", name, "data", str(number), key)
                    yield place, f"'{part}' is not one of the step's {key}{hint}; choose from: {choices}"


def _share_errors(name: str, step: Step, sources: Mapping[str, SourceConfig]) -> Iterator[Wrong]:
    """An error if the first data set has less than one pair per update. Every update takes at least one pair of the
    first data set, so updates would grow in the ratio of the shares."""
    shares, pairs = [source.share for source in sources.values()], step.training.batch_size
    if (expected_pairs := pairs * shares[0] / sum(shares)) < 1:
        yield (
            ("steps", name, "data", "0", "share"),
            f"this share gives the first data set only {expected_pairs:.2g} of {pairs} pairs per update, and every "
            "update needs at least one; raise the share or training.batch_size, or put another data set first",
        )


def _evaluate_errors(
    name: str,
    step: Step,
    sources: Mapping[str, SourceConfig],
    objectives: Mapping[str, ObjectiveConfig],
    data: DatasetConfig | None,
) -> Iterator[Wrong]:
    """An error if the step is scored on its first data set, which lacks an input or a label."""
    needed = [label for objective, config in objectives.items() if config.gives for label in config.required_labels]
    lacks = data is not None and not set(needed) <= set(data.labels)
    if not step.evaluate or not (step.evaluate == "own" or lacks):
        return
    first_name, first = next(iter(sources.items()))
    absent = [f"input '{name}'" for name in step.inputs if name not in first.inputs]
    absent += [f"label '{label}'" for label in needed if label not in first.data.labels]
    if absent:
        yield (
            ("steps", name, "evaluate"),
            f"the step is scored on its first data set, '{first_name}', which has no {absent[0]}; list another data "
            "set first, or set evaluate = false",
        )
