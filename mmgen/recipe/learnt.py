"""Check what steps learn: objectives that there are, that fit the step's inputs, its data, and one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from ..configs import GeneratorConfig, ObjectiveConfig
from ..errors import did_you_mean
from .tables import GENERATOR, Step


def misfits(name: str, step: Step, built: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """What is wrong with the objectives of a step: (place in the recipe, what and what to do)."""
    place = ("steps", name, "objectives")
    known: dict[str, ObjectiveConfig | GeneratorConfig | None] = {GENERATOR: built.get("generator")}
    known |= built["objectives"] or {}
    for wanted, count in Counter(step.objectives).items():
        if wanted not in known:
            there = ", ".join(known)
            yield place, f"there is no objective '{wanted}'{did_you_mean(wanted, [*known])}; there are: {there}"
        if count > 1:
            yield place, f"'{wanted}' is named twice"
    inputs = {each: config for each, config in (built["inputs"] or {}).items() if each in step.inputs and config}
    learnt = {each: known[each] for each in step.objectives if known.get(each) is not None}
    objectives = {each: config for each, config in learnt.items() if isinstance(config, ObjectiveConfig)}
    for each, config in objectives.items():
        if wrong := config.misfits(inputs):
            yield place, f"'{each}' {wrong}"
        data = step.data or built.get("data")
        if data is not None and (absent := [label for label in config.labels if label not in data.labels]):
            have = ", ".join(data.labels) or "none"
            yield place, f"'{each}' needs examples with the label '{absent[0]}', and data '{data.type}' has: {have}"
    hidden = [(part, each) for each, config in objectives.items() for part in config.hidden(inputs)]
    for part, count in Counter(part for part, _ in hidden).items():
        if count > 1:
            both = " and ".join(f"'{each}'" for other, each in hidden if other == part)
            yield place, f"{both} hide the input '{part}', and only one of them can; part them into two steps"
    makers = [each for each, config in objectives.items() if config.makes_rows]
    if len(makers) > 1:
        yield (
            place,
            f"'{makers[0]}' and '{makers[1]}' make rows of their own, and one of a step may; part them into two",
        )
    gives = [each for each, config in learnt.items() if config is not None and config.gives]
    if len(gives) > 1:
        yield (
            place,
            f"'{gives[0]}' and '{gives[1]}' both make predictions; part them into two steps",
        )
    if step.evaluate == "own" and step.data is None:
        yield (
            ("steps", name, "evaluate"),
            f"it has no data of its own; write [steps.{name}.data], or evaluate = true",
        )
    if step.evaluate and learnt and not any(config.gives for config in learnt.values() if config is not None):
        what = " and ".join(f"'{each}'" for each in learnt)
        yield ("steps", name, "evaluate"), f"{what} give nothing that could be scored; write evaluate = false"


def unjudged(built: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Metrics that judge what no step predicts: (place in the recipe, what and what to do)."""
    learnt = {GENERATOR: built.get("generator"), **(built["objectives"] or {})}
    steps = [step for step in (built["steps"] or {}).values() if step is not None and step.evaluate]
    gives = {learnt[each].gives for step in steps for each in step.objectives if learnt.get(each) is not None}
    data = [each for each in (built.get("data"), *(step.data for step in steps)) if each is not None]
    for name, config in (built["metrics"] or {}).items():
        if steps and config is not None and not config.judges & gives:
            judged, given = " or ".join(sorted(config.judges)), ", ".join(sorted(filter(None, gives))) or "nothing"
            yield ("metrics", name), f"judges {judged}, and the steps predict: {given}; leave it out"
        elif steps and config is not None and data and not any({*config.labels} <= {*each.labels} for each in data):
            yield ("metrics", name), f"needs examples with {_named(config.labels)}, and no data has them; leave it out"


def _named(labels: tuple[str, ...]) -> str:
    return " and ".join(f"the label '{label}'" for label in labels)
