"""Names of inputs, objectives and steps in the tables of a recipe; the tables may have other mistakes."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from ..errors import did_you_mean
from .tables import EXPORT, GENERATOR, PRETRAINED, WEIGHTS
from .toml_lines import Key

Wrong = tuple[Key, str]  # place in the recipe, what is wrong and what to do
RESERVED = "is reserved: in a step's `{}` it means {}; choose another name"


def name_problems(values: Mapping[str, Any]) -> Iterator[Wrong]:
    """Names that are unknown, reserved or listed twice, and steps that start from each other."""
    steps, inputs, objectives = (_tables(values.get(key)) for key in ("steps", "inputs", "objectives"))
    if "backbone" in inputs:
        yield ("inputs", "backbone"), f"'backbone' {RESERVED.format('train', 'the encoder')}"
    if PRETRAINED in steps:
        yield ("steps", PRETRAINED), f"'{PRETRAINED}' {RESERVED.format('start', 'the weights of the encoder')}"
    if steps and isinstance(default := values.get("default_step"), str):
        yield from _unknown(("default_step",), [default], steps, "step")
    trains = {name: step.get("objectives", [GENERATOR]) for name, step in steps.items() if step.get("train") != []}
    writing = [name for name, trained in trains.items() if GENERATOR in _texts(trained)]
    if writing and values.get(GENERATOR) is None:
        what = "add a table [generator], or name the step's objectives"
        yield (GENERATOR,), f"is missing, and step '{writing[0]}' trains it: {what}"
    for name, step in steps.items():
        read, trained = _texts(step.get("inputs")), _texts(step.get("objectives"))
        lists = [("inputs", read, inputs), ("objectives", trained, {GENERATOR: {}, **objectives})]
        for key, listed, known in lists:
            for twice in dict.fromkeys(part for part in listed if listed.count(part) > 1):
                yield ("steps", name, key), f"'{twice}' is listed twice; list it once"
            yield from _unknown(("steps", name, key), listed, known, key[:-1])
        if read:
            yield from _unknown(("steps", name, "train"), _texts(step.get("train")), [*read, "backbone"], "input")
        for number, source in enumerate(step["data"] if isinstance(step.get("data"), list) else ()):
            for key, of_step in (("inputs", read), ("objectives", trained or [GENERATOR])):
                listed = _texts(source.get(key)) if isinstance(source, dict) else []
                yield from _unknown(("steps", name, "data", str(number), key), listed, of_step, key[:-1])
        yield from _start_problems(name, step, steps)


def _start_problems(name: str, step: Mapping[str, Any], steps: Mapping[str, Any]) -> Iterator[Wrong]:
    place, start = ("steps", name, "start"), step.get("start", PRETRAINED)
    if not isinstance(start, str):
        return
    prefix = next((prefix for prefix in (WEIGHTS, EXPORT) if start.startswith(prefix)), "")
    if prefix and not start.removeprefix(prefix).strip():
        yield place, f'write a file, a folder or a hub name after "{prefix}"'
    elif start in steps:
        trail, before = [name], start
        while isinstance(before, str) and before in steps and before not in trail:
            trail.append(before)
            before = steps[before].get("start")
        if before == name:
            yield place, f"the steps start from each other in a cycle: {' -> '.join([*trail, name])}"
    elif not prefix and start != PRETRAINED:
        yield place, f"unknown step '{start}'{did_you_mean(start, [*steps, PRETRAINED])}"
    if step.get("train") == [] and (prefix or start == PRETRAINED):
        message = "must not be empty, unless `start` names the step whose weights this step has"
        yield ("steps", name, "train"), message


def _unknown(place: Key, names: Collection[str], known: Collection[str], kind: str) -> Iterator[Wrong]:
    for name in names:
        if known and name not in known:
            yield place, f"unknown {kind} '{name}'{did_you_mean(name, known)}; choose from: {', '.join(known)}"


def _tables(value: Any) -> dict[str, Mapping[str, Any]]:
    """Named tables; what is not a table is a mistake of its own."""
    tables = value if isinstance(value, dict) else {}
    return {name: table if isinstance(table, dict) else {} for name, table in tables.items()}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []
