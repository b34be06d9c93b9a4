"""Run probes on finished steps; write the tables, plots and notes of each into a folder, and read them again."""

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
    """The findings of each probe, or its error. `folder`/NAME/ has the files of a probe, with findings.json and
    tables.md. The caller must hold the run's lock.

    A probe that fails leaves its earlier files unchanged.
    """
    results: dict[str, ProbeResult | MmgenError] = {}
    clear_partials(folder)
    for name, config in probes.items():
        try:
            results[name] = write_folder(folder / name, partial(_run_probe, config, name, subject, seed))
        except MmgenError as error:
            results[name] = error
    return results


def _run_probe(config: ProbeConfig, name: str, subject: ProbeInput, seed: int, folder: Path) -> ProbeResult:
    """Run a probe, and write its findings into the folder."""
    with seeded(seed, name, "probe"):
        findings = config.build().run(subject, folder)
    about = {"type": config.type, "settings": config.model_dump(mode="json")}
    shown = {"tables": findings.tables, "plots": findings.plots, "notes": findings.notes}
    write_json(folder / FINDINGS, {**about, **shown})
    write_text(folder / "tables.md", text(findings) + "\n")
    return findings


def text(findings: ProbeResult) -> str:
    """The tables in Markdown, readable in a terminal too, and the notes."""
    tables = {title: [[cell(value) for value in row] for row in rows] for title, rows in findings.tables.items()}
    shown = [f"{title}\n\n{table(rows)}" for title, rows in tables.items()]
    return "\n\n".join([*shown, "\n".join(findings.notes)]).strip()


def cell(value: Any) -> str:
    """A value in a table of findings, as text."""
    return value if isinstance(value, str) else number(value)


def read(folder: Path) -> dict[str, ProbeResult]:
    """The findings of a run's probes by name; `folder` is probes/ of the run. Raises RunError for damaged files."""
    results = {}
    for path in sorted(folder.glob(f"[!.]*/{FINDINGS}")):
        saved = read_table(path, tables=dict, plots=dict, notes=list)
        results[path.parent.name] = ProbeResult(saved["tables"], saved["plots"], tuple(saved["notes"]))
    return results
