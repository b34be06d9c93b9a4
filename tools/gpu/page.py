"""The Markdown page: results by machine and commit, every figure with the command.

It is written from the journals alone, so it can be written again at any time, and has the results of every run."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from .journal import DONE, Journal, Result
from .machine import Machine, Peaks
from .run import Part
from .table import table

STAND_IN = "stand-in"
WARNING = "**A stand-in on a CPU, with tiny sizes: the figures mean nothing.**"


def write(path: Path, folder: Path, parts: Sequence[Part], stand_in: bool) -> None:
    """Write the page of all machines with journals in the folder; results of the stand-in are never mixed with real
    ones."""
    places = sorted(place for place in (folder / "journal").glob("*") if (place / "machine.json").exists())
    chosen = [place for place in places if (place.name == STAND_IN) == stand_in]
    lines = ["# On a GPU", "", *([WARNING, ""] if stand_in else []), *_intro()]
    for place in chosen:
        lines += ["", *machine_section(place, parts)]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _intro() -> list[str]:
    return ["Written by `python -m tools.gpu`. Models and data are synthetic, except in the main job."]


def machine_section(place: Path, parts: Sequence[Part]) -> list[str]:
    """All results of one machine."""
    machine = described(place)
    journals = {part.name: Journal(place / f"{part.name}.json") for part in parts}
    commits = dict.fromkeys(result["commit"] for journal in journals.values() for result in journal.steps.values())
    software = versions(journals.values())
    lines = [f"## {machine}", "", f"{software}. Commit {', '.join(commits) or 'unknown'}.", *_peaks(machine.peaks)]
    for part in parts:
        lines += ["", f"### {part.title}", "", *part_section(part, journals[part.name], machine, len(commits) > 1)]
    return lines


def described(place: Path) -> Machine:
    """The machine of a folder of journals; if its description cannot be read, one with the folder's name."""
    try:
        return Machine(**json.loads((place / "machine.json").read_text(encoding="utf-8")))
    except (ValueError, TypeError):
        return Machine(place.name, 0.0, 1, "an unknown CPU", 0, {})


def versions(journals: Iterable[Journal]) -> str:
    """The versions that the steps ran with. If they differ between runs, the steps of each version are named."""
    versions_by_name: dict[str, list[str]] = {}
    for journal in journals:
        for name, result in journal.steps.items():
            software = ", ".join(f"{package} {number}" for package, number in result.get("versions", {}).items())
            versions_by_name.setdefault(software or "unknown versions", []).append(f"{journal.path.stem}/{name}")
    if len(versions_by_name) < 2:
        return next(iter(versions_by_name), "Nothing was run")
    return "; ".join(f"{software} ({', '.join(steps)})" for software, steps in versions_by_name.items())


def _peaks(peaks: Peaks | None) -> list[str]:
    if peaks is None:
        return []
    rates = f"{peaks.bf16:g} TFLOP/s in bf16, {peaks.tf32:g} in TF32, {peaks.fp32:g} in fp32"
    return [f"Peaks (dense; source: datasheet): {rates}, {peaks.bandwidth:g} TB/s."]


def part_section(part: Part, journal: Journal, machine: Machine, name_commits: bool) -> list[str]:
    """The results, then the commands; or that the part did not run."""
    if not journal.steps:
        return ["Not run."]
    figures = {name: result["figures"] for name, result in journal.steps.items() if result.get("figures")}
    try:
        part_lines = part.lines(figures, machine)
    except Exception as error:  # half of what a line needs is not there yet; the run goes on whatever it is
        part_lines = [f"Too few results for a table ({type(error).__name__}: {error})."]
    lines = [*(part_lines if figures else ["Nothing was measured."]), "", *_commands(journal, name_commits)]
    finished = [record for record in journal.earlier if record["state"] == DONE]
    return lines + (["", f"Measured before, in the journal: {len(finished)} results."] if finished else [])


def _commands(journal: Journal, name_commits: bool) -> list[str]:
    rows = []
    for name, result in journal.steps.items():
        at = [result["commit"][:12]] if name_commits else []
        rows.append((name, _state(result), result.get("seconds", "-"), *at, f"`{result['command']}`"))
    return table(("step", "state", "s", *(["commit"] if name_commits else []), "command"), rows)


def _state(result: Result) -> str:
    why = result.get("why")
    return f"{result['state']}: {why}" if why else result["state"]
