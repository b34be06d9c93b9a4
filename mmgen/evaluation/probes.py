"""Probe: looks into the steps of a finished run, each look into a folder of its own that is there whole or not at
all."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..configs import ProbeConfig
from ..data.seeds import seed_from
from ..errors import MmgenError, RunError
from ..files import read_table, write_json, write_text
from ..markdown import number, table
from ..parts import ProbeInput, ProbeResult
from ..progress import Progress

FINDINGS = "findings.json"


def probe(
    probes: Mapping[str, ProbeConfig], subject: ProbeInput, folder: Path, seed: int, progress: Progress
) -> dict[str, ProbeResult | MmgenError]:
    """Each probe's findings, or why there are none; `folder`/NAME/ holds its files, findings.json and tables.md among
    them.

    A probe that gives nothing leaves what an earlier look has left.
    """
    found: dict[str, ProbeResult | MmgenError] = {}
    devices = list(range(torch.cuda.device_count()))
    for name, config in probes.items():
        partial = folder / f".{name}.partial"
        shutil.rmtree(partial, ignore_errors=True)
        try:
            partial.mkdir(parents=True)
            with torch.random.fork_rng(devices):
                torch.manual_seed(seed_from(seed, name, "probe"))
                findings = config.build().run(subject, partial)
            _keep(findings, config, partial, folder / name)
            found[name] = findings
        except MmgenError as error:
            found[name] = error
        except OSError as error:
            raise RunError(f"{folder}: cannot be written: {error}") from None
        finally:
            shutil.rmtree(partial, ignore_errors=True)
    return found


def _keep(findings: ProbeResult, config: ProbeConfig, partial: Path, folder: Path) -> None:
    told = {
        "type": config.type,
        "settings": config.model_dump(mode="json"),
        "tables": findings.tables,
        "plots": findings.plots,
    }
    write_json(partial / FINDINGS, {**told, "notes": findings.notes})
    write_text(partial / "tables.md", text(findings) + "\n")
    if folder.exists():
        shutil.rmtree(folder)
    partial.replace(folder)


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
