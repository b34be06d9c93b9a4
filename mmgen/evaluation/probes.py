"""Probe: looks into the steps of a finished run, each look into a folder of its own that is there whole or not at
all."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from ..configs import ProbeConfig
from ..data.seeds import seeded
from ..errors import MmgenError
from ..files import clear_partials, read_table, write_folder, write_json, write_text
from ..parts import ProbeInput, ProbeResult
from ..progress import number, table

FINDINGS = "findings.json"


def probe(
    probes: Mapping[str, ProbeConfig], subject: ProbeInput, folder: Path, seed: int
) -> dict[str, ProbeResult | MmgenError]:
    """Each probe's findings, or why there are none; `folder`/NAME/ holds its files, findings.json and tables.md among
    them. Only for whoever holds the run's lock.

    A probe that gives nothing leaves what an earlier look has left.
    """
    found: dict[str, ProbeResult | MmgenError] = {}
    clear_partials(folder)
    for name, config in probes.items():
        try:
            found[name] = write_folder(folder / name, partial(_look, config, name, subject, seed))
        except MmgenError as error:
            found[name] = error
    return found


def _look(config: ProbeConfig, name: str, subject: ProbeInput, seed: int, folder: Path) -> ProbeResult:
    """What a probe finds, and its files in the folder."""
    with seeded(seed, name, "probe"):
        findings = config.build().run(subject, folder)
    about = {"type": config.type, "settings": config.model_dump(mode="json")}
    shown = {"tables": findings.tables, "plots": findings.plots, "notes": findings.notes}
    write_json(folder / FINDINGS, {**about, **shown})
    write_text(folder / "tables.md", text(findings) + "\n")
    return findings


def text(findings: ProbeResult) -> str:
    """Tables in Markdown, which are read as well in a terminal, and the notes."""
    tables = {title: [[cell(value) for value in row] for row in rows] for title, rows in findings.tables.items()}
    shown = [f"{title}\n\n{table(rows)}" for title, rows in tables.items()]
    return "\n\n".join([*shown, "\n".join(findings.notes)]).strip()


def cell(value: Any) -> str:
    return value if isinstance(value, str) else number(value)


def read(folder: Path) -> dict[str, ProbeResult]:
    """What the probes of a run have found, by their names; `folder` is its probes/. Raises RunError for damaged
    files."""
    found = {}
    for path in sorted(folder.glob(f"[!.]*/{FINDINGS}")):
        saved = read_table(path, tables=dict, plots=dict, notes=list)
        found[path.parent.name] = ProbeResult(saved["tables"], saved["plots"], tuple(saved["notes"]))
    return found
