"""The first minutes on a GPU, without one: the stand-in runs every part, and what a sitting must not get wrong."""

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from gpu import page
from gpu.checkout import ROOT, environment
from gpu.journal import DONE, FAILED, STOPPED, Journal
from gpu.launch import judged, launch
from gpu.machine import Machine
from gpu.measures.epochs import seconds
from gpu.measures.on_gpu import Counting
from gpu.measures.tracing import busy, kernels
from gpu.parts import PARTS
from gpu.parts.suites import collectable
from gpu.sitting import Part, Sitting, Step, todo
from gpu.sizes import REAL, TINY
from torch.autograd import DeviceType

HERE = Machine(None, 0.0, 0, "a processor", 2, {"torch": "2"})


def sit(*arguments: str) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "tests.gpu", *arguments]
    hidden = {"CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **hidden})


# --- the whole of it ------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_stand_in_runs_every_part_and_once_only(tmp_path):
    done = sit("--stand-in", "--folder", str(tmp_path), "--commit", "abc")
    assert done.returncode == 0, done.stdout + done.stderr
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.WARNING in written and "Not run" not in written and "Nothing was measured" not in written
    assert "Not enough was measured" not in written and "reached" not in written
    assert all(f"### {part.title}" in written for part in PARTS)
    for part in PARTS:
        steps = Journal(tmp_path / "journal" / page.STAND_IN / f"{part.name}.json").steps
        assert steps and {result["state"] for result in steps.values()} == {DONE}
        assert all(f"`{result['command']}`" in written for result in steps.values())
    again = sit("--stand-in", "--folder", str(tmp_path), "--page", str(tmp_path / "again.md"))
    assert again.returncode == 0 and "python -m" not in again.stdout
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == written


def test_without_a_gpu_it_says_what_it_leaves_out(tmp_path):
    done = sit("--folder", str(tmp_path))
    assert done.returncode == 0 and done.stdout.startswith("no GPU here, so nothing is measured; left out:\n")
    assert all(f"    {part.name}: {part.title}" in done.stdout for part in PARTS)
    assert not (tmp_path / "page.md").exists()


def test_the_list_needs_no_gpu_and_unknown_parts_are_told(tmp_path):
    done = sit("--list", "--folder", str(tmp_path))
    assert done.returncode == 0
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line[0] != " "] == [p.name for p in PARTS]
    done = sit("--only", "suits", "--folder", str(tmp_path))
    assert done.returncode == 1 and done.stderr.startswith("error: there is no part 'suits'; there are: suites, main,")


# --- sittings -------------------------------------------------------------------------------------------------------


def python(code: str) -> tuple[str, ...]:
    return "-c", code


def sitting(folder: Path, *steps: Step, **more) -> tuple[Sitting, Part, list[str]]:
    said: list[str] = []
    part = Part("p", "A part", lambda sizes, work: list(steps), lambda found, machine: [f"found {sorted(found)}"])
    return Sitting(folder, HERE, "abc", TINY, say=said.append, **more), part, said


def test_what_failed_is_run_again_and_what_is_done_is_not(tmp_path):
    counted = python(f"open({str(tmp_path / 'count')!r}, 'a').write('1'); print('{{\"a\": 1}}')")
    steps = Step("good", counted), Step("bad", python("import sys; sys.exit('no memory of it')"))
    one, part, said = sitting(tmp_path, *steps)
    assert not one.hold([part]) and not one.hold([part])
    assert (tmp_path / "count").read_text() == "1"
    journal = one.journal(part)
    assert journal.steps["good"]["figures"] == {"a": 1} and journal.steps["bad"]["state"] == FAILED
    assert journal.steps["bad"]["why"] == "ended with exit status 1: no memory of it"
    assert [each["state"] for each in journal.earlier] == [FAILED]
    page.write(tmp_path / "page.md", tmp_path, [part], stand_in=False)
    told = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Commit abc." in told and "found ['good']" in told and "no memory of it" in told


def test_figures_of_a_failed_check_are_kept(tmp_path):
    one, part, _ = sitting(tmp_path, Step("check", python("print('{\"off\": 2}'); raise SystemExit('too far off')")))
    assert not one.hold([part])
    result = one.journal(part).steps["check"]
    assert (result["state"], result["figures"]) == (FAILED, {"off": 2})


def test_output_that_is_none_is_a_failure(tmp_path):
    one, part, _ = sitting(tmp_path, Step("odd", python("print('all well')")))
    assert not one.hold([part]) and one.journal(part).steps["odd"]["state"] == FAILED


def test_a_signal_is_a_failure_and_a_limit_is_a_stop(tmp_path):
    crash = launch(python("import os, signal; os.kill(os.getpid(), 11)"), tmp_path / "o", tmp_path / "l", 60)
    assert (crash.state, crash.why) == (FAILED, "ended by SIGSEGV") and judged(-9)[0] == FAILED
    slow = launch(python("import time; time.sleep(60)"), tmp_path / "o", tmp_path / "l", 0.3)
    assert slow.state == STOPPED and slow.seconds < 30


def test_no_step_begins_when_the_time_is_over(tmp_path):
    one, part, said = sitting(tmp_path, Step("late", python("print('{}')")), until=0.001)
    assert not one.hold([part])
    assert said == ["p: late: left for the next sitting, the time is over"] and not one.journal(part).steps


def test_what_was_made_is_made_again_only_where_it_is_needed(tmp_path):
    product = tmp_path / "features"
    make, use = Step("make", (), product=product), Step("use", (), after=("make",))
    journal = Journal(tmp_path / "p.json")
    assert todo([make, use], journal) == [make, use]
    journal.keep("make", {"state": DONE})
    assert todo([make, use], journal) == [make, use]  # it is done, but the folder is new
    product.mkdir()
    assert todo([make, use], journal) == [use]
    journal.keep("use", {"state": DONE})
    product.rmdir()
    assert todo([make, use], Journal(tmp_path / "p.json")) == []


def test_a_step_whose_material_is_not_there_is_left_out(tmp_path):
    steps = Step("make", python("raise SystemExit(1)"), product=tmp_path / "x"), Step("use", (), after=("make",))
    one, part, said = sitting(tmp_path, *steps)
    assert not one.hold([part]) and said[-1] == "p: use: left out, since make is not done"


def test_a_journal_that_was_damaged_is_put_aside_and_nothing_done_is_lost(tmp_path):
    journal = Journal(tmp_path / "p.json")
    journal.keep("a", {"state": DONE, "figures": {"x": 1}})
    journal.forget()
    journal.keep("a", {"state": FAILED})
    assert [each["figures"] for each in Journal(tmp_path / "p.json").earlier] == [{"x": 1}]
    (tmp_path / "p.json").write_text("{")
    assert not Journal(tmp_path / "p.json").steps and (tmp_path / "p.damaged").exists()


# --- what is measured, and on what ----------------------------------------------------------------------------------


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


def test_two_machines_have_journals_of_their_own():
    h100, h200 = (Machine(f"NVIDIA {name}", 1.0, 1, "p", 2, {}) for name in ("H100 80GB HBM3", "H200"))
    assert h100.slug != h200.slug and "/" not in h100.slug


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


def test_checkpoints_are_told_apart_from_epochs():
    times = [0.0]
    for number in range(8):  # a checkpoint is written behind updates 2, 4 (an epoch's end) and 6
        times.append(times[-1] + (1.5 if number in (2, 4, 6) else 1.0))
    found = seconds(times, [4, 8], 2)
    assert found["update"] == 1.0
    assert [(each["seconds"], each["checkpoints"]) for each in found["epochs"]] == [(4.0, 0.5), (4.0, 1.0)]


def test_only_tests_that_take_memory_of_a_gpu_are_counted(monkeypatch, capfd):
    taken = iter([0, 0, 0, 5])  # before and after a test on torch's meta device, and one on a GPU
    monkeypatch.setattr("gpu.measures.on_gpu.allocations", lambda: next(taken))
    counting = Counting()
    for name in ("meta", "gpu"):
        around = counting.pytest_runtest_protocol(SimpleNamespace(nodeid=name))
        next(around), next(around, None)
        counting.pytest_runtest_logreport(SimpleNamespace(nodeid=name, failed=False, skipped=False, when="call"))
    assert counting.on_gpu == {"gpu"} and counting.ended == {"meta": "passed", "gpu": "passed"}


def test_the_suites_need_no_caption_metrics():
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    named = collectable(paths)
    assert "tests/plugins/test_captioneval.py" not in named and "tests/plugins/test_regions.py" in named
    for step in PARTS[0].steps(REAL, Path("work")):
        files = [ROOT / word for word in step.arguments if word.endswith(".py")]
        assert not [path for path in files if "captioneval" in path.read_text(encoding="utf-8")]


def test_a_bare_checkout_has_its_plugins(tmp_path):
    script = "from importlib.metadata import entry_points as e; print(sorted(p.name for p in e(group='mmgen')))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment(tmp_path / "i"), capture_output=True, text=True
    )
    assert {"encoders", "masked", "regions", "scenes", "text"} <= set(re.findall(r"\w+", done.stdout)), done.stderr
    own = environment(tmp_path / "i", stand_in=True)
    assert own["OMP_NUM_THREADS"] == "1" and own["CUDA_VISIBLE_DEVICES"] == ""
