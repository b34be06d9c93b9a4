"""A pytest plugin: counts the outcomes of tests, and which tests used GPU memory; prints them as JSON at the end.

A test that only mentions a device, or uses torch's `meta`, uses no GPU memory and is not counted. A process that a
test starts counts as the test itself, if it is Python and exits by itself."""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import pytest
import torch

KINDS = ("passed", "failed", "skipped")


WATCHING = Path(__file__).resolve().parents[1] / "watching"
SEEN = "MMGEN_GPU_SEEN"  # in the environment: where processes that tests start leave a word


def pytest_configure(config: pytest.Config) -> None:
    """Turn the SIGTERM of a run whose time is over into a Ctrl-C, so that the results so far are printed."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    watch(tempfile.mkdtemp(prefix="mmgen-gpu-seen-"))
    config.pluginmanager.register(Counting(), "tests-on-gpu")


def watch(folder: str) -> None:
    """Make Python processes that are started from now on report in the folder that they used GPU memory."""
    os.environ[SEEN] = folder
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(WATCHING), os.environ.get("PYTHONPATH")]))


class Counting:
    """The outcome of every test so far."""

    def __init__(self) -> None:
        self.ended: dict[str, str] = {}
        self.why: dict[str, str] = {}
        self.on_gpu: set[str] = set()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item):
        before = allocations()
        yield
        if allocations() > before:
            self.on_gpu.add(item.nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = report.nodeid
        if report.failed:
            self.ended[name] = "failed"
            self.why.setdefault(name, _reason(report))
        elif report.skipped or report.when == "call":
            self.ended.setdefault(name, "skipped" if report.skipped else "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.ended[report.nodeid], self.why[report.nodeid] = "failed", "cannot be collected: " + _reason(report)

    def pytest_unconfigure(self) -> None:
        counts = {kind: sum(ended == kind for ended in self.ended.values()) for kind in KINDS}
        ran = {name for name, ended in self.ended.items() if ended != "skipped"}
        failures = [f"{name.rpartition('::')[2]}: {why}" for name, why in self.why.items()]
        print(json.dumps(counts | {"on_gpu": len(self.on_gpu & ran), "failures": failures}), file=sys.__stdout__)


def allocations() -> int:
    """How often this process has allocated GPU memory since its start, and how many of its children have."""
    seen = os.environ.get(SEEN)
    child_count = len(list(Path(seen).iterdir())) if seen else 0
    if not torch.cuda.is_available() or not torch.cuda.is_initialized():
        return child_count
    return child_count + torch.cuda.memory_stats().get("allocation.all.allocated", 0)


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    lines = [line for line in str(report.longrepr).splitlines() if line.startswith("E ")] or [str(report.longrepr)]
    return " ".join(lines[0].removeprefix("E").split())[:200]
