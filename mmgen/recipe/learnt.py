"""Check what steps learn: objectives that there are, that fit the step's inputs, its data, and one another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ..configs import GeneratorConfig, ObjectiveConfig
from ..errors import did_you_mean
from .mixtures import Wrong, unmixable
from .tables import GENERATOR, SourceConfig, Step


def misfits(name: str, step: Step, built: Mapping[str, Any]) -> Iterator[Wrong]:
    """What is wrong with the objectives of a step, and with what it learns them from."""
    place = ("steps", name, "objectives")
    known: dict[str, ObjectiveConfig | GeneratorConfig | None] = {GENERATOR: built.get("generator")}
    known |= built["objectives"] or {}
    for wanted, count in Counter(step.objectives).items():
        if wanted not in known:
            there = ", ".join(known)
            yield place, f"there is no objective '{wanted}'{did_you_mean(wanted, [*known])}; there are: {there}"
        if count > 1:
            yield place, f"'{wanted}' is named twice"
    yield from ((place, wrong) for wrong in _unlent(step, known))
    inputs = {each: config for each, config in (built["inputs"] or {}).items() if each in step.inputs and config}
    learnt = {each: config for each in step.objectives if (config := known.get(each)) is not None}
    objectives = {each: config for each, config in learnt.items() if isinstance(config, ObjectiveConfig)}
    data = built.get("data")
    if isinstance(step.data, tuple):
        yield from unmixable(name, step, inputs, objectives, data)
    for default in [*step.own[:1], *([data] if data is not None else [])][:1]:
        for number, source in enumerate(step.sources(default, inputs, objectives).values()):
            own = ("steps", name, "data", str(number), "objectives") if isinstance(step.data, tuple) else place
            yield from ((own, wrong) for wrong in _unlearnable(source, inputs, objectives))
    yield from _unscored(name, step, [*learnt], {each: config.gives for each, config in learnt.items()})


def _unlent(step: Step, known: Mapping[str, ObjectiveConfig | GeneratorConfig | None]) -> Iterator[str]:
    """What is wrong with the objectives that heads of a step begin as."""
    for each in step.objectives:
        wanted = getattr(known.get(each), "init_from", "")
        lender = known.get(wanted)
        if wanted and wanted not in known:
            yield f"'{each}' begins as '{wanted}', which is no objective{did_you_mean(wanted, [*known])}"
        elif lender is not None and not (isinstance(lender, ObjectiveConfig) and lender.lends):
            yield f"'{each}' begins as '{wanted}', which has no hidden layer for that; name another"


def _unlearnable(
    source: SourceConfig, inputs: Mapping[str, Any], objectives: Mapping[str, ObjectiveConfig]
) -> Iterator[str]:
    """What is wrong with the objectives that learn from one data set together."""
    there = {each: config for each, config in inputs.items() if each in source.inputs}
    learnt = {each: config for each, config in objectives.items() if each in source.objectives}
    for each, config in learnt.items():
        if wrong := config.misfits(there):
            yield f"'{each}' {wrong}"
        if absent := [label for label in config.labels if label not in source.data.labels]:
            have = ", ".join(source.data.labels) or "none"
            yield f"'{each}' needs examples with the label '{absent[0]}', and data '{source.data.type}' has: {have}"
    hidden = [(part, each) for each, config in learnt.items() for part in config.hidden(there)]
    for part, count in Counter(part for part, _ in hidden).items():
        if count > 1:
            both = " and ".join(f"'{each}'" for other, each in hidden if other == part)
            yield f"{both} hide the input '{part}', and only one of them can; part them into two steps"
    makers = [each for each, config in learnt.items() if config.makes_rows]
    if len(makers) > 1:
        yield f"'{makers[0]}' and '{makers[1]}' make rows of their own, and one of a step may; part them into two"


def _unscored(name: str, step: Step, learnt: Sequence[str], gives: Mapping[str, str | None]) -> Iterator[Wrong]:
    """What is wrong with the predictions of a step."""
    giving = [each for each in learnt if gives[each]]
    if len(giving) > 1:
        yield (
            ("steps", name, "objectives"),
            f"'{giving[0]}' and '{giving[1]}' both make predictions; part them into two steps",
        )
    if step.evaluate == "own" and not step.own:
        yield (
            ("steps", name, "evaluate"),
            f"it has no data of its own; write [steps.{name}.data], or evaluate = true",
        )
    if step.evaluate and learnt and not giving:
        what = " and ".join(f"'{each}'" for each in learnt)
        yield ("steps", name, "evaluate"), f"{what} give nothing that could be scored; write evaluate = false"


def unjudged(built: Mapping[str, Any]) -> Iterator[Wrong]:
    """Metrics that judge what no step predicts. Nobody knows what an objective predicts that could not be made."""
    learnt = {GENERATOR: built.get("generator"), **(built["objectives"] or {})}
    steps = [step for step in (built["steps"] or {}).values() if step is not None and step.evaluate]
    named = [learnt.get(each) for step in steps for each in step.objectives]
    gives, unknown = {config.gives for config in named if config is not None}, None in named
    data = [each for each in (built.get("data"), *(own for step in steps for own in step.own[:1])) if each is not None]
    for name, config in (built["metrics"] or {}).items():
        if steps and config is not None and not unknown and not config.judges & gives:
            judged, given = " or ".join(sorted(config.judges)), ", ".join(sorted(filter(None, gives))) or "nothing"
            yield ("metrics", name), f"judges {judged}, and the steps predict: {given}; leave it out"
        elif steps and config is not None and data and not any({*config.labels} <= {*each.labels} for each in data):
            yield ("metrics", name), f"needs examples with {_named(config.labels)}, and no data has them; leave it out"


def _named(labels: tuple[str, ...]) -> str:
    return " and ".join(f"the label '{label}'" for label in labels)
