"""The GPU checks: the description of the machine, missing requirements, and counts."""

import platform
import re
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace

import pytest
from torch.autograd import DeviceType

from tools.gpu.checkout import ROOT, environment
from tools.gpu.machine import Machine, query
from tools.gpu.measures.epochs import seconds
from tools.gpu.measures.on_gpu import Counting, allocations, watch
from tools.gpu.measures.tracing import busy, kernels
from tools.gpu.needs import lacking, needed, refusal
from tools.gpu.parts import PARTS
from tools.gpu.parts.main_job import read
from tools.gpu.parts.suites import collectable
from tools.gpu.sizes import REAL


@pytest.mark.parametrize(
    ("name", "memory", "bandwidth"),
    [
        ("NVIDIA H100 80GB HBM3", 85.0, 3.35),
        ("NVIDIA H200", 150.0, 4.8),
        ("NVIDIA H200", 70.0, None),  # a slice of one
        ("NVIDIA H100 PCIe", 85.0, None),
        ("NVIDIA GH200 480GB", 102.0, None),
        (None, 0.0, None),
    ],
)
def test_peaks_are_those_of_known_devices_alone(name, memory, bandwidth):
    peaks = Machine(name, memory, 1, "p", 2, {}).peaks
    assert (peaks and peaks.bandwidth) == bandwidth


def test_machines_have_journals_of_their_own():
    cases = (("H100 80GB HBM3", 85.0, 1), ("H100 80GB HBM3", 85.0, 2), ("H200", 150.0, 1))
    assert [Machine(f"NVIDIA {name}", memory, count, "p", 2, {}).slug for name, memory, count in cases] == [
        "nvidia-h100-80gb-hbm3-85gb",
        "2-x-nvidia-h100-80gb-hbm3-85gb",
        "nvidia-h200-150gb",
    ]


@pytest.mark.parametrize(
    ("code", "line"),
    [
        ("import time; time.sleep(60)", "error: cannot find out within 0.5 s which GPU this machine has; see whether"),
        ("raise OSError('no driver')", "error: cannot find out which GPU this machine has: OSError: no driver; `"),
        ("", "error: cannot find out which GPU this machine has: no output; exit status 0; `python -c ''`"),
    ],
)
def test_a_machine_that_does_not_answer_is_a_line(code, line, monkeypatch):
    monkeypatch.setattr("tools.gpu.machine.ASK", (sys.executable, "-c", code))
    monkeypatch.setattr("tools.gpu.machine.PATIENCE", 0.5 if "sleep" in code else 60)
    with pytest.raises(SystemExit) as left:
        query()
    assert str(left.value).startswith(line) and "\n" not in str(left.value)


def event(kind, name, start, end, **more):
    return SimpleNamespace(device_type=kind, name=name, time_range=SimpleNamespace(start=start, end=end), **more)


def test_busy_counts_the_devices_own_time_once():
    events = [
        event(DeviceType.CPU, "aten::mm", 0, 900),
        event(DeviceType.CUDA, "gemm", 10, 30),
        event(DeviceType.CUDA, "copy", 20, 40),
        event(DeviceType.CUDA, "ProfilerStep", 0, 900, is_user_annotation=True),
    ]
    assert [name for name, *_ in kernels(events)] == ["gemm", "copy"] and busy(kernels(events)) == 30


def test_checkpoints_are_distinguished_from_epochs():
    times = [0.0]
    for number in range(8):  # a checkpoint is written behind updates 2, 4 (an epoch's end) and 6
        times.append(times[-1] + (1.5 if number in (2, 4, 6) else 1.0))
    times_by_kind = seconds(times, [4, 8], 2)
    assert times_by_kind["update"] == 1.0
    assert [(epoch["seconds"], epoch["checkpoints"]) for epoch in times_by_kind["epochs"]] == [(4.0, 0.5), (4.0, 1.0)]


def test_the_main_jobs_rates_are_read_from_the_lines_of_a_run():
    lines = (
        "both: training                   64000/64000    709 pairs/s            90 s  loss 0.677, validation 0.754\n"
        "both: writing                    120/120        180 texts/s             1 s\n"
        "done in 7.5 minutes; all files are in runs/x\n"
    )
    figures = read(lines)
    assert [(rate["work"], rate["rate"], rate["seconds"]) for rate in figures["rates"]] == [
        ("training", 709, 90),
        ("writing", 180, 1),
    ]
    assert figures["minutes"] == "7.5"


def test_only_tests_that_take_memory_of_a_gpu_are_counted(monkeypatch, capfd):
    taken = iter([0, 0, 0, 5])  # before and after a test on torch's meta device, and one on a GPU
    monkeypatch.setattr("tools.gpu.measures.on_gpu.allocations", lambda: next(taken))
    counting = Counting()
    for name in ("meta", "gpu"):
        around = counting.pytest_runtest_protocol(SimpleNamespace(nodeid=name))
        next(around), next(around, None)
        counting.pytest_runtest_logreport(SimpleNamespace(nodeid=name, failed=False, skipped=False, when="call"))
    assert counting.on_gpu == {"gpu"} and counting.ended == {"meta": "passed", "gpu": "passed"}


def test_a_process_that_takes_memory_of_a_gpu_counts_as_the_test_that_started_it(tmp_path, monkeypatch):
    """A fake torch reports that memory was used; the shadowed sitecustomize runs too."""
    for name in ("MMGEN_GPU_SEEN", "PYTHONPATH"):
        monkeypatch.setenv(name, str(tmp_path))
    (tmp_path / "seen").mkdir()
    (tmp_path / "sitecustomize.py").write_text("print('behind')")
    (tmp_path / "torch.py").write_text(
        "class cuda:\n    is_available = is_initialized = staticmethod(lambda: TAKEN > 0)\n"
        "    memory_stats = staticmethod(lambda: {'allocation.all.allocated': TAKEN})\nTAKEN = 0\n"
    )
    watch(str(tmp_path / "seen"))
    for code in ("pass", "import torch", "import torch; torch.TAKEN = 3"):
        before = allocations()
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert (done.stdout, done.stderr) == ("behind\n", "")
        assert allocations() - before == ("TAKEN" in code)


def test_missing_packages_are_one_line():
    assert lacking(needed()) == {}
    assert lacking(["filelock>=999", "torch>=2.6", "nosuchthing"]) == {
        "filelock>=999": version("filelock"),
        "nosuchthing": None,
    }
    place = f"--only-binary=:all: --python-version {sys.version_info[0]}.{sys.version_info[1]}"
    place += "".join(f" --platform {kind}_{platform.machine()}" for kind in ("manylinux_2_28", "manylinux2014"))
    assert refusal({"filelock>=3.30": "3.20", "pydantic>=2.9": None, "timm>=1": None, "torch>=2.6": None}) == (
        "error: a run on a GPU needs filelock>=3.30 (3.20 is here), pydantic>=2.9, timm>=1, torch>=2.6; "
        "too large to copy; choose a machine that has them: torch>=2.6; small wheels to copy: "
        f"`python -m pip download -d wheels {place} 'filelock>=3.30' 'pydantic>=2.9'` && "
        f"`python -m pip download --no-deps -d wheels {place} 'timm>=1'`, and on this machine "
        "`python -m pip install --no-index --find-links wheels 'filelock>=3.30' 'pydantic>=2.9' 'timm>=1'`"
    )


def test_the_suites_need_no_caption_metrics():
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    named = collectable(paths)
    assert "tests/plugins/captioneval/test_metric.py" not in named and "tests/plugins/regions/test_embedder.py" in named
    for step in PARTS[0].steps(REAL, Path("work")):
        files = [ROOT / word for word in step.arguments if word.endswith(".py")]
        assert not [path for path in files if "captioneval" in path.read_text(encoding="utf-8")]


def test_a_bare_checkout_has_its_plugins(tmp_path):
    script = "from importlib.metadata import entry_points as e; print(sorted(p.name for p in e(group='mmgen')))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(tmp_path / "i"), capture_output=True, text=True
    )
    assert {"encoders", "masked", "regions", "scenes", "text"} <= set(re.findall(r"\w+", done.stdout)), done.stderr
    variables = environment(tmp_path / "i", stand_in=True)
    assert variables["OMP_NUM_THREADS"] == "1" and variables["CUDA_VISIBLE_DEVICES"] == ""
