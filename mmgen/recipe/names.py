"""Names of inputs, objectives and steps in the tables of a recipe; the tables may have other mistakes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..errors import did_you_mean
from .tables import EXPORT, GENERATOR, PRETRAINED, WEIGHTS
from .toml_lines import Key

Wrong = tuple[Key, str]  # place in the recipe, what is wrong and what to do


def name_problems(values: Mapping[str, Any]) -> Iterator[Wrong]:
    """Names that are unknown, reserved or listed twice, and steps that start from each other."""
    steps, inputs = _tables(values.get("steps")), _tables(values.get("inputs"))
    objectives = [*([GENERATOR] if values.get(GENERATOR) is not None else []), *_tables(values.get("objectives"))]
    reserved = "is reserved: in a step's `{}` it means {}; choose another name"
    if "backbone" in inputs:
        yield ("inputs", "backbone"), f"'backbone' {reserved.format('train', 'the encoder')}"
    if PRETRAINED in steps:
        yield ("steps", PRETRAINED), f"'{PRETRAINED}' {reserved.format('start', 'the weights of the encoder')}"
    if steps and isinstance(default := values.get("default_step"), str):
        yield from _unknown(("default_step",), [default], steps, "step")
    writing = next((name for name, step in steps.items() if GENERATOR in step.get("objectives", [GENERATOR])), None)
    if writing is not None and GENERATOR not in objectives:
        message = f"is missing, and step '{writing}' trains it: add a table [generator], or name the step's objectives"
        yield (GENERATOR,), message
    for name, step in steps.items():
        place, named = ("steps", name), _texts(step.get("inputs"))
        if inputs:
            yield from _unknown((*place, "inputs"), named, inputs, "input")
            yield from _unknown((*place, "train"), _texts(step.get("train")), [*inputs, "backbone"], "input")
        for unread in [part for part in _texts(step.get("train")) if named and part in inputs and part not in named]:
            yield (*place, "train"), f"'{unread}' is not one of the step's inputs"
        trained = _texts(step.get("objectives"))
        yield from _unknown((*place, "objectives"), trained, {GENERATOR: 0, **dict.fromkeys(objectives)}, "objective")
        for key, listed in (("inputs", named), ("objectives", trained)):
            for twice in {part for part in listed if listed.count(part) > 1}:
                yield (*place, key), f"'{twice}' is listed twice; list it once"
        for number, source in enumerate(step["data"] if isinstance(step.get("data"), list) else ()):
            for key, of_step in (("inputs", named), ("objectives", trained or [GENERATOR])):
                for part in _texts(source.get(key)) if isinstance(source, dict) else ():
                    if of_step and part not in of_step:
                        choices = f"{did_you_mean(part, of_step)}; choose from: {', '.join(of_step)}"
                        yield (*place, "data", str(number), key), f"'{part}' is not one of the step's {key}{choices}"
        yield from _start_problems(name, step, steps)


def _start_problems(name: str, step: Mapping[str, Any], steps: Mapping[str, Any]) -> Iterator[Wrong]:
    place, start = ("steps", name, "start"), step.get("start", PRETRAINED)
    if not isinstance(start, str):
        return
    if prefix := next((prefix for prefix in (WEIGHTS, EXPORT) if start.startswith(prefix)), None):
        if not start.removeprefix(prefix).strip():
            yield place, f'write a file, a folder or a hub name after "{prefix}"'
    elif start in steps:
        trail, before = [name], start
        while isinstance(before, str) and before in steps and before not in trail:
            trail.append(before)
            before = steps[before].get("start")
        if before == name:
            yield place, f"the steps start from each other in a cycle: {' -> '.join([*trail, name])}"
    elif start != PRETRAINED:
        yield place, f"unknown step '{start}'{did_you_mean(start, [*steps, PRETRAINED])}"
    if step.get("train") == [] and (prefix or start == PRETRAINED):
        message = "must not be empty, unless `start` names the step whose weights this step has"
        yield ("steps", name, "train"), message


def _unknown(place: Key, names: Collection[str], known: Collection[str], kind: str) -> Iterator[Wrong]:
    for name in names:
        if name not in known:
            yield place, f"unknown {kind} '{name}'{did_you_mean(name, known)}; choose from: {', '.join(known)}"


def _tables(value: Any) -> dict[str, Mapping[str, Any]]:
    """Named tables; what is not a table is a mistake of its own."""
    tables = value if isinstance(value, dict) else {}
    return {name: table if isinstance(table, dict) else {} for name, table in tables.items()}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
