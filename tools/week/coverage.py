"""What exists, and what of it the jobs use; the rest has a reason here."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click

from .steps import ROOT, Code, File, Job, Shell

EXCEPTIONS = {
    "command": {
        "frcnn": "needs the published files of the Faster R-CNN of Visual Genome",
        "push": "needs the hub",
        **dict.fromkeys(("ray features extract", "ray generate", "ray predict", "ray run"), "needs the extra ray"),
    },
    "recipe": {
        "bertgen_vqa_features.toml": "needs published networks; a job checks it",
    },
    "plugin": {
        "mmgen_frcnn": "needs the published files of the Faster R-CNN of Visual Genome",
        "mmgen_ray": "needs the extra ray",
        "mmgen_trackers": "needs the extra of a tracker",
        "mmgen_vl": "has no part: other plugins import it",
    },
    "example": {"Dockerfile": "needs Docker", "mmgen_lora": "needs peft"},
}
"""What no job uses, by kind: name -> why."""
PART = re.compile(r"(?:\btype=|--type |--metric |--track )(\w+)")
PACKAGE = re.compile(r"^(?:import|from) (mmgen_\w+)", re.MULTILINE)


def existing() -> dict[str, set[str]]:
    """Names of all commands (`features extract`), recipes, packages of plugins and entries of examples/, by kind."""
    from mmgen.cli import main

    return {
        "command": set(_commands(main)),
        "recipe": {path.name for path in ROOT.glob("recipes/*.toml")},
        "plugin": {path.name for path in ROOT.glob("plugins/mmgen_*")},
        "example": {path.name for path in ROOT.glob("examples/*") if path.name != "README.md"},
    }


def used(jobs: Sequence[Job]) -> dict[str, set[str]]:
    """What of `existing()` the jobs use: a command that a step calls; a recipe that a step runs or a file extends; a
    package of plugins of which a part is named in a recipe or on a command line, or that is imported; an entry of
    examples/ that a step names."""
    everything, uses = existing(), {kind: set[str]() for kind in existing()}
    owners = _owners()
    for job in jobs:
        commands = "\n".join(step.text() for step in job.steps if isinstance(step, Shell))
        words = {*re.findall(r"[\w-]+", commands)}
        files = [step.text() for step in job.steps if isinstance(step, File) and step.path.endswith(".toml")]
        code = "\n".join(step.text() for step in job.steps if isinstance(step, Code))
        recipes = [recipe for text in files for recipe in _with_bases(text, Path())]
        uses["recipe"] |= {path.name for path, _ in recipes if path.name}
        for name in everything["recipe"]:
            if re.search(rf"mmgen run [^\n]*\brecipes/{re.escape(name)}", commands) or f"in recipes/{name}" in commands:
                below = _with_bases((ROOT / "recipes" / name).read_text(encoding="utf-8"), Path("recipes") / name)
                recipes += below
                uses["recipe"] |= {path.name for path, _ in below}
        parts = {*PART.findall(commands), *(name for _, recipe in recipes for name in _parts(recipe, words))}
        called = {name for name in everything["command"] if re.search(rf"\bmmgen {name}\b", commands)}
        parts |= {name.split()[0] for name in called}
        uses["command"] |= called
        uses["plugin"] |= {owners[name] for name in parts & owners.keys()} | {*PACKAGE.findall(code)}
        uses["example"] |= {name for name in everything["example"] if f"examples/{name}" in commands}
    return uses


def not_used(jobs: Sequence[Job]) -> list[tuple[str, str]]:
    """(kind, name) of what exists, no job uses, and has no exception."""
    uses = used(jobs)
    return [
        (kind, name)
        for kind, names in existing().items()
        for name in sorted(names - uses[kind] - EXCEPTIONS[kind].keys())
    ]


def exceptions() -> str:
    """The exceptions as lines."""
    rows = [(kind, name, reason) for kind, names in EXCEPTIONS.items() for name, reason in names.items()]
    return "\n".join(f"- no job uses the {kind} {name}: {reason}" for kind, name, reason in rows)


def _commands(group: click.Group, path: str = "") -> Iterator[str]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}"


def _owners() -> dict[str, str]:
    """Name of a part -> its package."""
    from mmgen.registry import installed

    return {part.name: part.config.__module__.split(".")[0] for part in installed().parts}


def _with_bases(text: str, path: Path) -> list[tuple[Path, dict[str, Any]]]:
    """A recipe, and those that it extends, with their paths; `path` is that of `text`, Path() for a file of a job."""
    recipe = tomllib.loads(text)
    base = path.parent / recipe["extends"] if "extends" in recipe else None
    if base is None or not (ROOT / base).exists():  # nothing, or another file of the job
        return [(path, recipe)]
    return [(path, recipe), *_with_bases((ROOT / base).read_text(encoding="utf-8"), base)]


def _parts(recipe: dict[str, Any], words: set[str]) -> set[str]:
    """Names of parts in a recipe: outside of profiles, in the profiles that are among the words of the commands, and
    else in the recipe's own."""
    profiles: dict[str, Any] = recipe.get("profiles", {})
    chosen = words & profiles.keys() or {recipe.get("profile", "")} & profiles.keys()
    tables = [table for key, table in recipe.items() if key != "profiles"]
    return {*_types(tables), *_types([profiles[name] for name in chosen])}


def _types(value: object) -> Iterator[str]:
    """Every `type`, and every objective of a step, in nested tables."""
    if isinstance(value, dict):
        yield from (name for name in (value.get("type"), *value.get("objectives", ())) if isinstance(name, str))
        value = [*value.values()]
    if isinstance(value, list):
        for entry in value:
            yield from _types(entry)
