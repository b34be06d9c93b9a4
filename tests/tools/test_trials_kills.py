"""The trials of kills and of several processes: a few cases of every kind of surface, and planted losses are found."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
import torch
from kit import served
from safetensors.numpy import save

from mmgen.files import write_text
from tools.trials import folders, forks, kills, processes, service, writers

pytestmark = pytest.mark.slow


def cases(writer: writers.Writer, folder: Path, count: int = 12) -> tuple[int, set[str]]:
    """How often the work of a writer was killed in some cases, and what went wrong."""
    surface = writers.Writing(writer, folder)
    outcomes = [surface.case(random.Random(number)) for number in range(count)]
    return sum(outcome.tries for outcome in outcomes), {text for outcome in outcomes for text in outcome.wrong}


def test_atomic_files_survive_kills(tmp_path):
    writer = writers.Writer(
        "text",
        lambda folder: write_text(folder / "a.txt", "new" * 1000),
        lambda folder: (folder / "a.txt").write_text("old"),
    )
    count, wrong = cases(writer, tmp_path)
    assert count >= 5 and not wrong


def test_a_file_that_is_written_in_place_is_found(tmp_path):
    def careless(folder):
        (folder / "a.txt").unlink()
        (folder / "a.txt").write_text("half")
        (folder / "b.txt").write_text("complete")
        (folder / "a.txt").write_text("complete")

    writer = writers.Writer("text", careless, lambda folder: (folder / "a.txt").write_text("old"))
    _, wrong = cases(writer, tmp_path, 24)
    assert {"a.txt is incomplete after the kill", "a.txt is missing after the kill"} <= wrong


def test_a_write_into_a_file_that_was_there_before_is_found(tmp_path):
    def careless(folder):
        with (folder / "a.txt").open("r+b") as file:
            file.write(b"n" * 500)
            file.flush()
            (folder / "b.txt").touch()
            file.write(b"n" * 500)

    writer = writers.Writer("text", careless, lambda folder: (folder / "a.txt").write_text("o" * 1000))
    _, wrong = cases(writer, tmp_path, 24)
    assert "a.txt is incomplete after the kill" in wrong


def test_a_file_that_is_left_over_is_found(tmp_path):
    """The next writer has another temporary name, and does not look for that of the killed one."""

    def careless(folder):
        partial = folder / f".a.{os.getpid()}.partial"
        partial.write_text("complete")
        partial.replace(folder / "a.txt")

    _, wrong = cases(writers.Writer("text", careless), tmp_path, 8)
    assert any(text.startswith(".a.") and text.endswith(".partial is left over") for text in wrong)


def test_work_that_fails_after_a_kill_is_found(tmp_path):
    def careless(folder):
        (folder / "lock").mkdir()
        (folder / "a.txt").touch()
        (folder / "lock").rmdir()

    surface = writers.Writing(writers.Writer("text", careless), tmp_path)
    wrong = [text for number in range(8) for text in surface.case(random.Random(number)).wrong]
    assert any("the work ends with 2: " in text and "FileExistsError" in text for text in wrong)


def test_a_fork_renews_torchs_threads_before_threads_of_its_work_compute(tmp_path, monkeypatch):
    """Else a service in a fork answered its first requests with "Invalid thread pool!" and status 500, now and then."""
    (tmp_path / "a").mkdir()
    calls: list[int] = []
    monkeypatch.setattr(torch, "set_num_threads", calls.append)
    assert forks.run(lambda: print(calls), tmp_path / "a").output == f"[{torch.get_num_threads()}]\n"


def test_work_that_hangs_is_killed_and_reported(tmp_path):
    (tmp_path / "case").mkdir()
    ending = forks.Fork(lambda: time.sleep(60), tmp_path / "case").wait(0.05)
    assert (ending.status, ending.output) == (forks.MISTAKE, "killed after 0.05 seconds")


def test_missing_left_over_and_different_files_are_told_apart(tmp_path):
    for folder, files in (("a", {"same": "x", "changed": "1", "gone": ""}), ("b", {"same": "x", "changed": "2"})):
        (tmp_path / folder / "empty").mkdir(parents=True)
        for name, text in files.items():
            (tmp_path / folder / name).write_text(text)
    (tmp_path / "b/.left.partial").touch()
    assert folders.differences(tmp_path / "a", tmp_path / "b") == [
        "gone is missing",
        ".left.partial is left over",
        "changed differs",
    ]


def test_torn_files_are_told_from_complete_ones(tmp_path):
    complete = {
        "a.json": b"{}",
        "a.jsonl": b"{}\n{}\n",
        "empty.jsonl": b"",
        "a.html": b"<html></html>\n",
        "a.toml": b"a = 1",
        "a.txt": b"{",
        "a.safetensors": save({"a": np.zeros(3)}),
        ".a.json": b"{",
    }
    for name, content in complete.items():
        (tmp_path / name).write_bytes(content)
    h5py.File(tmp_path / "a.h5", "w").close()
    assert folders.torn(tmp_path) == []
    for name in ("a.json", "a.jsonl", "a.html", "a.toml", "a.safetensors", "a.h5"):
        path = tmp_path / name
        path.write_bytes(path.read_bytes().rstrip()[:-1])
    assert [text.partition(" ")[0] for text in folders.torn(tmp_path)] == [
        "a.h5",
        "a.html",
        "a.json",
        "a.jsonl",
        "a.safetensors",
        "a.toml",
    ]


@pytest.mark.slow
def test_writers_of_mmgen_leave_nothing_after_a_kill(tmp_path, monkeypatch):
    """One case of some kinds; the checkpoint of 300 MB takes seconds."""
    names = ["checkpoint", "export over an export", "feature store that grows", "merged answers"]
    monkeypatch.setattr(kills, "SHARES", dict.fromkeys(names, 1))
    (tmp_path / "cases").mkdir()
    with kills.opened(0, tmp_path / "cases") as case:
        outcomes = [case(number) for number in range(len(names))]
    assert [outcome.surface for outcome in outcomes] == sorted(names)
    assert [text for outcome in outcomes for text in outcome.wrong] == []


def test_the_surfaces_of_a_turn_are_spread_by_their_shares(tmp_path):
    assert kills.order({"a": 4, "b": 2}) == ["a", "b", "a", "a", "b", "a"]
    assert Counter(kills.order(kills.SHARES)) == kills.SHARES
    assert kills.surfaces(tmp_path / "materials").keys() == kills.SHARES.keys()


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, pytest.param(signal.SIGKILL, marks=pytest.mark.exhaustive)])
def test_a_service_that_is_ended_under_load_loses_nothing(tmp_path, how):
    pytest.importorskip("uvicorn", reason="the service is an extra")
    surface = service.Serving(served.predictor(tmp_path), how, tmp_path / "surface")
    outcome = surface.case(random.Random(0))
    assert (outcome.surface, outcome.tries, outcome.wrong) == (f"service, {how.name}", 1, ())
    # requests that were accepted and not answered are found, also an exit code and an unexpected status
    load = SimpleNamespace(answers=[(200, b""), (500, b""), (0, b""), (503, b"")])
    surface.accepted.write_bytes(b"xx")
    ending = forks.Ending(1, 0.0, "why", "Traceback: why")
    assert surface._unexpected(ending, load) == [
        "status 500 of an answer: why",
        "a traceback on stderr: Traceback: why",
    ]
    assert surface._ended_in_order(ending, load) == ["exit code 1: why", "2 requests were accepted, and 1 answered"]


def test_whole_answers_are_compared():
    answer = {"id": "a", "created": 1, "texts": [{"text": "what", "score": -1.25}], "remarks": []}
    assert service.same(answer, {**answer, "id": "b", "created": 2, "texts": [{"text": "what", "score": -1.2504}]})
    for change in (
        {"texts": [{"text": "what", "score": -1.3}]},
        {"texts": [{"text": "what"}]},
        {"texts": []},
        {"remarks": ["cut"]},
        {"remarks": None},
        {"more": 1},
    ):
        assert not service.same(answer, {**answer, **change}) and not service.same({**answer, **change}, answer)


def test_a_line_on_stderr_is_wrong_unless_it_is_usual_or_allowed():
    assert forks.complaints("") == forks.complaints("error: stopped\n", allowed="stopped") == []
    assert forks.complaints("note\nerror: stopped\n", "note\n", "stopped") == []
    assert forks.complaints("note\nerror: stopped\n", "note\n") == ["on stderr: error: stopped"]
    assert forks.complaints("note\nerror: stopped\n") == ["on stderr: note / error: stopped"]
    assert forks.complaints("Traceback\n", "Traceback\n") == ["a traceback on stderr: Traceback"]


def test_what_a_writer_prints_and_leaves_is_found(tmp_path):
    def careless(folder):
        print("one\ntwo", file=sys.stderr)
        (folder / "a.txt").touch()
        Path(tempfile.gettempdir(), "deep").mkdir(exist_ok=True)
        Path(tempfile.gettempdir(), "deep/a").touch()

    _, wrong = cases(writers.Writer("text", careless), tmp_path, 4)
    assert {"on stderr: one / two", "deep/a is left over among temporary files"} <= wrong


@pytest.mark.parametrize(
    ("way", "statuses"),
    [("end", [0, 0]), ("one error", [processes.LEFT] * 2), ("one kill", [processes.LEFT, -signal.SIGKILL])],
)
def test_the_statuses_that_are_expected(way, statuses):
    assert [processes.expected(way, rank, 2) for rank in range(2)] == statuses


class Started:
    """A process that stands for one that trains; `seconds` until it ends with `status`."""

    def __init__(self, status: int, seconds: float, folder: Path, stdout: str = "1 finite", stderr: str = "") -> None:
        self.printed = SimpleNamespace(stdout=stdout, stderr=stderr)
        code = f"import sys, time; time.sleep({seconds}); sys.exit({status})"
        self.popen = subprocess.Popen([sys.executable, "-S", "-c", code], cwd=folder)
        self.pid = self.popen.pid

    def ended(self) -> bool:
        return self.popen.poll() is not None

    def finish(self) -> SimpleNamespace:
        return SimpleNamespace(returncode=self.popen.wait(), **vars(self.printed))


class Unnoticed(Started):
    """Its end is noticed late, as on a busy machine."""

    polls = 0

    def ended(self) -> bool:
        self.polls += 1
        return self.polls > 100 and super().ended()


def test_processes_that_end_otherwise_or_hang_are_found(tmp_path, monkeypatch):
    statuses = iter([0, 1])
    monkeypatch.setattr(processes.forked, "start", lambda *_, **__: Started(next(statuses), 0.0, tmp_path))
    assert start("end", 2, tmp_path) == ["exit statuses [0, 1] instead of [0, 0]:  / "]
    monkeypatch.setattr(processes.forked, "start", lambda *_, **__: Unnoticed(0, 60.0, tmp_path))
    monkeypatch.setattr(processes, "SECONDS", 0.2)
    assert start("end", 1, tmp_path) == ["hangs for over 0.2 seconds", "exit statuses [-9] instead of [0]: "]


def start(way, count, folder, moment=processes.MOMENTS[0]):
    Path(f"{folder}.tmp").mkdir(exist_ok=True)
    return processes.start(way, count, folder, moment, random.Random(0))


def test_what_processes_print_and_leave_is_found(tmp_path, monkeypatch):
    """Their exit status is right. The line of a process that has waited for another is right, too."""
    folder = tmp_path / "case"
    folder.mkdir()

    def wrong(*printed):
        endings = iter(printed)
        monkeypatch.setattr(processes.forked, "start", lambda *_, **__: Started(0, 0.0, folder, *next(endings)))
        return start("end", len(printed), folder)

    fine = "1 finite"
    assert wrong((fine, f"process 1 of 2: another process has ended; it {processes.ALLOWED}\n"), (fine,)) == []
    assert wrong((fine,), (fine, "Traceback (most recent call last):\nKeyError")) == [
        "process 1, a traceback on stderr: Traceback (most recent call last):\nKeyError"
    ]
    assert wrong((fine,), ("2 finite",)) == ["the processes have the weights ['1 finite', '2 finite']"]
    assert wrong(("1 nan",)) == ["the processes have the weights ['1 nan']"]
    for name in ("case/.weights.partial", "case.tmp/x"):
        (tmp_path / name).touch()
    (folder / "log.jsonl").write_text("{")
    assert wrong((fine,)) == [
        "log.jsonl is torn: ValueError: the last line has no end",
        ".weights.partial is left over",
        "x is left over among temporary files",
    ]


def test_the_end_is_before_a_call_that_is_drawn(tmp_path):
    class Loader:
        def load(self):
            return 7

    processes._before_call(3, Loader, "load", lambda: 1 / 0)
    loader = Loader()
    assert [loader.load(), loader.load()] == [7, 7]
    with pytest.raises(ZeroDivisionError):
        loader.load()


@pytest.mark.exhaustive
@pytest.mark.parametrize(("way", "moment"), [*product(processes.WAYS[1:], processes.MOMENTS), ("end", "")])
def test_several_processes_end_in_order(tmp_path, way, moment):
    assert start(way, 2, tmp_path, moment) == []
