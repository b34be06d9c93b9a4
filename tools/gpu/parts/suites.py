"""Tests on the GPU: those of this folder, the device tests of the conformance suites, and mmgen's tests."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from ..checkout import ROOT
from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import table

ABSENT = re.compile(
    r"captioneval|test_scoring|from tools.fuzz|sphinx|pip install|hypothesis|test_readme|test_distributed"
)
OWN = "tools/gpu/suite"
BESIDE = (
    "inference/test_predict.py",
    "features/test_extract.py",
    "runs/test_run.py",
    "runs/test_seeds.py",
    "runs/test_warm_start.py",
    "training/test_accumulate.py",
    "training/test_train.py",
)
PYTEST = ("-m", "pytest", "-q", "-p", "tools.gpu.measures.on_gpu", "-p", "no:cacheprovider", "-p", "no:randomly")


def collectable(paths: list[Path]) -> list[str]:
    """The test files that need only what a run has: no caption metrics, no network, no test tools but pytest, no
    other test file that does."""
    return [str(path.relative_to(ROOT)) for path in paths if not ABSENT.search(path.read_text(encoding="utf-8"))]


def steps(sizes: Sizes, work: Path) -> list[Step]:
    """The steps, one per file: a device error breaks everything after it in the same process."""
    if sizes.device != "cuda":
        chosen = ("-k", sizes.families) if sizes.families else ()
        return [Step("own", (*PYTEST, OWN, "--device", sizes.device, *chosen))]
    suite_files = [str(path.relative_to(ROOT)) for path in sorted((ROOT / OWN).glob("test_*.py"))]
    commands = [Step(f"own-{Path(path).stem}", (*PYTEST, path, "--device", sizes.device)) for path in suite_files]
    plugins = collectable(sorted((ROOT / "tests" / "plugins").rglob("test_*.py")))
    beside = collectable([path for name in BESIDE if (path := ROOT / "tests" / name).exists()])
    commands.append(Step("conformance", (*PYTEST, *plugins, "-k", "test_devices")))
    return [*commands, *(Step(f"beside-{Path(path).stem}", (*PYTEST, path)) for path in beside)]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    rows = []
    for name, result in figures.items():
        counts = [result[kind] for kind in ("passed", "failed", "skipped", "on_gpu")]
        rows.append((name, *counts, "; ".join(result["failures"][:5]) or "-"))
    header = ("suite", "passed", "failed", "skipped", "run on the GPU", "failures")
    return [
        *table(header, rows),
        "",
        "*On the GPU*: the test, or a process that it started, used GPU memory, as counted by the allocator.",
    ]


SUITES = Part("suites", "Suites on the GPU", steps, lines)
