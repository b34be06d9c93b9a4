"""Run a probe on finished steps; write its tables, plots and notes into a folder, and read them again."""

from __future__ import annotations

from pathlib import Path

from ..configs import ProbeConfig
from ..data.seeds import seeded
from ..files import read_table, write_json, write_text
from ..parts import ProbeInput, ProbeResult
from ..progress import number, table

FINDINGS = "findings.json"


def run_probe(config: ProbeConfig, name: str, subject: ProbeInput, seed: int, folder: Path) -> ProbeResult:
    """Run a probe, and write its findings into the folder: findings.json and tables.md."""
    with seeded(seed, name, "probe"):
        findings = config.build().run(subject, folder)
    about = {"type": config.type, "settings": config.model_dump(mode="json")}
    shown = {"tables": findings.tables, "plots": findings.plots, "notes": findings.notes}
    write_json(folder / FINDINGS, {**about, **shown})
    write_text(folder / "tables.md", text(findings) + "\n")
    return findings


def text(findings: ProbeResult) -> str:
    """The tables in Markdown, readable in a terminal too, and the notes."""
    shown = [f"{title}\n\n{table([[*map(cell, row)] for row in rows])}" for title, rows in findings.tables.items()]
    return "\n\n".join([*shown, "\n".join(findings.notes)]).strip()


def cell(value: str | float | None) -> str:
    """A value in a table of findings, as text."""
    return value if isinstance(value, str) else number(value)


def read(folder: Path) -> dict[str, ProbeResult]:
    """The findings of a run's probes by name; `folder` is probes/ of the run. Raises RunError for damaged files."""
    results = {}
    for path in sorted(folder.glob(f"[!.]*/{FINDINGS}")):
        saved = read_table(path, tables=dict, plots=dict, notes=list)
        results[path.parent.name] = ProbeResult(saved["tables"], saved["plots"], tuple(saved["notes"]))
    return results
