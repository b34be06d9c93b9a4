"""The page: what has been measured on which machine at which commit, every figure with its command, as Markdown.

It is made from the journals alone, so it can be written again at any time, and holds what every sitting has found.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from .journal import DONE, Journal, Result
from .machine import Machine, Peaks
from .sitting import Part
from .table import table

STAND_IN = "stand-in"
WARNING = "**A stand-in on a processor, with tiny sizes: its figures mean nothing.**"


def write(path: Path, folder: Path, parts: Sequence[Part], stand_in: bool) -> None:
    """The page of all machines whose journals are in the folder; the stand-in's is never among real ones."""
    found = sorted(place for place in (folder / "journal").glob("*") if (place / "machine.json").exists())
    chosen = [place for place in found if (place.name == STAND_IN) == stand_in]
    lines = ["# On a GPU", "", *([WARNING, ""] if stand_in else []), *_intro()]
    for place in chosen:
        lines += ["", *machine_section(place, parts)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _intro() -> list[str]:
    return ["`python -m tests.gpu` has written this page. Models and data are made up, except in the main job."]


def machine_section(place: Path, parts: Sequence[Part]) -> list[str]:
    """Everything that one machine has measured."""
    machine = Machine(**json.loads((place / "machine.json").read_text(encoding="utf-8")))
    journals = {part.name: Journal(place / f"{part.name}.json") for part in parts}
    commits = dict.fromkeys(result["commit"] for journal in journals.values() for result in journal.steps.values())
    versions = ", ".join(f"{name} {version}" for name, version in machine.versions.items())
    lines = [f"## {machine}", "", f"{versions}. Commit {', '.join(commits) or 'unknown'}.", *_peaks(machine.peaks)]
    for part in parts:
        lines += ["", f"### {part.title}", "", *part_section(part, journals[part.name], machine, len(commits) > 1)]
    return lines


def _peaks(peaks: Peaks | None) -> list[str]:
    if peaks is None:
        return []
    rates = f"{peaks.bf16:g} TFLOP/s in bf16, {peaks.tf32:g} in TF32, {peaks.fp32:g} in fp32"
    return [f"Peaks (dense; source: datasheet): {rates}, {peaks.bandwidth:g} TB/s."]


def part_section(part: Part, journal: Journal, machine: Machine, name_commits: bool) -> list[str]:
    """What was found, then the commands; a part that was not run says so."""
    if not journal.steps:
        return ["Not run."]
    figures = {name: result["figures"] for name, result in journal.steps.items() if result.get("figures")}
    try:
        told = part.lines(figures, machine)
    except (KeyError, ValueError, IndexError, TypeError) as error:  # half of what a line needs is not there yet
        told = [f"Not enough was measured for a table ({type(error).__name__}: {error})."]
    lines = [*(told if figures else ["Nothing was measured."]), "", *_commands(journal, name_commits)]
    kept = [each for each in journal.earlier if each["state"] == DONE]
    return lines + (["", f"Measured before, in the journal: {len(kept)} results."] if kept else [])


def _commands(journal: Journal, name_commits: bool) -> list[str]:
    rows = []
    for name, result in journal.steps.items():
        at = [result["commit"][:12]] if name_commits else []
        rows.append((name, _state(result), result.get("seconds", "-"), *at, f"`{result['command']}`"))
    return table(("step", "state", "s", *(["commit"] if name_commits else []), "command"), rows)


def _state(result: Result) -> str:
    why = result.get("why")
    return f"{result['state']}: {why}" if why else result["state"]
