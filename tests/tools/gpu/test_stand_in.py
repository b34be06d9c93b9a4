"""The GPU checks without a GPU: the stand-in runs every part, and the rules of a run hold."""

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from kit import forked

from tools.gpu import page
from tools.gpu.checkout import ROOT
from tools.gpu.journal import DONE, FAILED, STOPPED, Journal
from tools.gpu.launch import Ended, judged, launch, offspring
from tools.gpu.launch import _end as end
from tools.gpu.launch import _started as started
from tools.gpu.machine import Machine
from tools.gpu.parts import PARTS
from tools.gpu.run import Part, Run, Step, todo
from tools.gpu.sizes import TINY

pytestmark = pytest.mark.slow

HIDDEN = {"CUDA_VISIBLE_DEVICES": ""}
FEW = tuple(part for part in PARTS if part.name == "cuts")  # a quick one
HERE = Machine(None, 0.0, 0, "a processor", 2, {"torch": "2"})


def command(*arguments: str) -> subprocess.CompletedProcess:
    words = [sys.executable, "-m", "tools.gpu", *arguments]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env={**os.environ, **HIDDEN})


def stand_in(*arguments: str) -> subprocess.CompletedProcess:
    """The command with `--stand-in`, with torch already imported."""
    script = "import runpy; runpy.run_module('tools.gpu', run_name='__main__', alter_sys=True)"
    return forked.run(script, "--stand-in", *arguments, folder=ROOT, **HIDDEN)


# --- the whole of it ------------------------------------------------------------------------------------------------


@pytest.mark.exhaustive  # a small part takes 40 s; without a GPU nobody uses it
@pytest.mark.parametrize("chosen", [FEW, PARTS], ids=["few", "all"])
def test_the_stand_in_runs_every_part_and_once_only(tmp_path, chosen):
    only = [word for part in chosen for word in ("--only", part.name)]
    done = stand_in("--folder", str(tmp_path), "--commit", "abc", *only)
    assert done.returncode == 0, done.stdout + done.stderr
    written = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert page.WARNING in written and "Nothing was measured" not in written and "reached" not in written
    assert "Not enough was measured" not in written and written.count("Not run.") == len(PARTS) - len(chosen)
    assert all(f"### {part.title}" in written for part in chosen)
    for part in chosen:
        steps = Journal(tmp_path / "journal" / page.STAND_IN / f"{part.name}.json").steps
        assert steps and {result["state"] for result in steps.values()} == {DONE}
        assert all(f"`{result['command']}`" in written for result in steps.values())
    again = stand_in("--folder", str(tmp_path), "--page", str(tmp_path / "again.md"), *only)
    assert again.returncode == 0 and "python -m" not in again.stdout
    assert (tmp_path / "again.md").read_text(encoding="utf-8") == written


def test_without_a_gpu_it_says_what_it_leaves_out(tmp_path):
    done = command("--folder", str(tmp_path))
    assert done.returncode == 0 and done.stdout.startswith("no GPU found, so nothing is measured; skipped parts:\n")
    assert all(f"    {part.name}: {part.title}" in done.stdout for part in PARTS)
    assert not (tmp_path / "page.md").exists()


def test_the_list_needs_no_gpu_and_unknown_parts_are_reported(tmp_path):
    done = command("--list", "--folder", str(tmp_path))
    assert done.returncode == 0
    assert [line.partition(":")[0] for line in done.stdout.splitlines() if line[0] != " "] == [p.name for p in PARTS]
    done = command("--only", "suits", "--folder", str(tmp_path))
    assert done.returncode == 1 and done.stderr.startswith("error: unknown part 'suits'; choose from: suites, main,")


# --- runs -----------------------------------------------------------------------------------------------------------


def python(code: str) -> tuple[str, ...]:
    return "-c", code


def run_of(folder: Path, *steps: Step, **more) -> tuple[Run, Part, list[str]]:
    said: list[str] = []
    part = Part("p", "A part", lambda sizes, work: list(steps), lambda figures, machine: [f"found {sorted(figures)}"])
    return Run(folder, HERE, "abc", TINY, say=said.append, **more), part, said


def test_what_failed_is_run_again_and_what_is_done_is_not(tmp_path):
    counted = python(f"open({str(tmp_path / 'count')!r}, 'a').write('1'); print('{{\"a\": 1}}')")
    steps = Step("good", counted), Step("bad", python("import sys; sys.exit('no memory of it')"))
    run, part, said = run_of(tmp_path, *steps)
    assert not run.measure([part]) and not run.measure([part])  # a run tries once
    run, part, said = run_of(tmp_path, *steps)
    assert not run.measure([part])
    assert (tmp_path / "count").read_text() == "1"
    journal = run.journal(part)
    assert journal.steps["good"]["figures"] == {"a": 1} and journal.steps["bad"]["state"] == FAILED
    assert journal.steps["bad"]["why"] == "ended with exit status 1: no memory of it"
    assert [record["state"] for record in journal.earlier] == [FAILED]
    page.write(tmp_path / "page.md", tmp_path, [part], stand_in=False)
    page_text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert "Commit abc." in page_text and "found ['good']" in page_text and "no memory of it" in page_text


def test_figures_of_a_failed_check_are_kept(tmp_path):
    run, part, _ = run_of(tmp_path, Step("check", python("print('{\"off\": 2}'); raise SystemExit('too far off')")))
    assert not run.measure([part])
    result = run.journal(part).steps["check"]
    assert (result["state"], result["figures"]) == (FAILED, {"off": 2})


def test_output_that_is_none_is_a_failure(tmp_path):
    run, part, _ = run_of(tmp_path, Step("odd", python("print('all well')")))
    assert not run.measure([part]) and run.journal(part).steps["odd"]["state"] == FAILED


def test_a_signal_is_a_failure_and_a_limit_is_a_stop(tmp_path):
    crash = launch(python("import os, signal; os.kill(os.getpid(), 11)"), tmp_path / "o", tmp_path / "l", 60)
    assert (crash.state, crash.why) == (FAILED, "ended by SIGSEGV") and judged(-9)[0] == FAILED
    slow = launch(python("import time; time.sleep(60)"), tmp_path / "o", tmp_path / "l", 0.3)
    assert slow.state == STOPPED and slow.seconds < 30


def test_a_crash_says_where_and_the_run_goes_on(tmp_path):
    crash = python("import faulthandler; faulthandler.enable(); import os; os.kill(os.getpid(), 11)")
    run, part, said = run_of(tmp_path, Step("crash", crash), Step("next", python("print('{}')")))
    assert not run.measure([part]) and run.journal(part).done("next")
    why = run.journal(part).steps["crash"]["why"]
    assert why == "ended by SIGSEGV: Fatal Python error: Segmentation fault"
    assert judged(-60) == (FAILED, "ended by signal 60")


def test_a_part_whose_minutes_are_over_is_stopped_and_its_figures_are_kept(tmp_path, monkeypatch):
    clock = [0.0]

    def slow(arguments, out, log, limit, forked):
        clock[0] += limit
        out.write_text('{"a": 1}\n{"a": 2}\n')
        return Ended(STOPPED, "its limit", limit)

    monkeypatch.setattr("tools.gpu.run.launch", slow)
    monkeypatch.setattr("tools.gpu.run.time", SimpleNamespace(monotonic=lambda: clock[0]))
    run, part, said = run_of(tmp_path, Step("slow", ()), Step("late", ()))
    assert not run.measure([part]) and clock == [480.0]
    result = run.journal(part).steps["slow"]
    assert (result["state"], result["figures"], result["seconds"]) == (STOPPED, {"a": 2}, 480.0)
    assert "p: late: left for the next run; the time is over" in said


def test_what_was_stopped_or_failed_waits_for_what_was_not_tried(tmp_path):
    steps = [Step(name, python("print('{}')")) for name in ("slow", "new")]
    run, part, said = run_of(tmp_path, *steps)
    run.journal(part).keep("slow", {"state": STOPPED, "commit": "abc"})
    assert run.measure([part]) and [line.split(": ")[1] for line in said[::2]] == ["new", "slow"]
    again, part, said = run_of(tmp_path / "mended", *steps)
    again.journal(part).keep("slow", {"state": FAILED, "commit": "another"})
    assert again.measure([part]) and [line.split(": ")[1] for line in said[::2]] == ["slow", "new"]


def test_nothing_is_left_behind_of_what_a_step_has_started(tmp_path):
    """torchrun's workers have separate sessions, and may ignore SIGTERM."""
    sleeper = tmp_path / "sleeper.py"
    sleeper.write_text("import signal, time; signal.signal(15, signal.SIG_IGN); print(flush=True); time.sleep(600)")
    parent = f"import subprocess, sys; subprocess.run([sys.executable, {str(sleeper)!r}], start_new_session=True)"
    with (tmp_path / "out").open("wb") as out:
        pid, poll = started(python(parent), out.fileno(), out.fileno())
        while not (tmp_path / "out").stat().st_size:  # the sleeper is there
            time.sleep(0.01)
        ((child, _),) = offspring(pid)
        end(pid, poll, grace=0.1)
    stat = Path(f"/proc/{child}/stat")
    while stat.exists() and stat.read_text().rpartition(")")[2].split()[0] != "Z":
        time.sleep(0.01)


def test_no_step_begins_when_the_time_is_over(tmp_path):
    run, part, said = run_of(tmp_path, Step("late", python("print('{}')")), until=0.001)
    assert not run.measure([part])
    assert said == ["p: late: left for the next run; the time is over"] and not run.journal(part).steps


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
    run, part, said = run_of(tmp_path, *steps)
    assert not run.measure([part]) and said[-1] == "p: use: skipped, because make is not done"


def test_a_journal_that_was_damaged_is_put_aside_and_nothing_done_is_lost(tmp_path):
    journal = Journal(tmp_path / "p.json")
    journal.keep("a", {"state": DONE, "figures": {"x": 1}})
    journal.forget()
    journal.keep("a", {"state": FAILED})
    assert [record["figures"] for record in Journal(tmp_path / "p.json").earlier] == [{"x": 1}]
    (tmp_path / "p.json").write_text("{")
    assert not Journal(tmp_path / "p.json").steps and (tmp_path / "p.damaged").exists()


# --- the page -----------------------------------------------------------------------------------------------------


def test_versions_belong_to_steps(tmp_path):
    journals = [Journal(tmp_path / f"{name}.json") for name in ("a", "b")]
    for journal, torch in zip(journals, ("2.6", "2.6"), strict=True):
        journal.keep("one", {"state": DONE, "versions": {"torch": torch}})
    assert page.versions(journals) == "torch 2.6"
    journals[1].keep("two", {"state": DONE, "versions": {"torch": "2.11"}})
    assert page.versions(journals) == "torch 2.6 (a/one, b/one); torch 2.11 (b/two)"


def test_a_page_is_written_whatever_the_journals_hold(tmp_path):
    run, part, _ = run_of(tmp_path, Step("good", python("print('{\"a\": 0}')")))
    broken = Part("p", "A part", part.steps, lambda figures, machine: [str(1 / figures["good"]["a"])])
    assert run.measure([part])
    (tmp_path / "journal" / run.slug / "machine.json").write_text("{")
    page.write(tmp_path / "page.md", tmp_path, [broken], stand_in=False)
    page_text = (tmp_path / "page.md").read_text(encoding="utf-8")
    assert (
        "Too few results for a table (ZeroDivisionError: division by zero)." in page_text and "## no-gpu" in page_text
    )
