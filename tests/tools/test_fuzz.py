"""Bad input: a short run of the fuzzer on every surface, and what the fuzzer finds."""

import contextlib
import ctypes
import dataclasses
import importlib
import logging
import os
import pickle
import shutil
import socket
import subprocess
import tempfile
import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import save_file

from mmgen.data.example_sizes import Measures
from mmgen.errors import DataError
from mmgen.features.index import IndexedFile, IndexedStore
from tools.fuzz import BATCHES, Bench, all_surfaces, fuzz, harness, judge
from tools.fuzz import folder as case_folder
from tools.fuzz.__main__ import main as fuzz_command
from tools.fuzz.folder import CaseFolder
from tools.trials import fuzz as trial

pytestmark = pytest.mark.slow  # every test starts commands or processes

SLOW = {
    "lxmert_h5": 10,
    "old_store": 10,
    "results": 2,
    "checkpoint": 2,
    "run_folder": 8,
    "weights": 6,
    "pretrained": 8,
    "commands": 12,
    "export": 6,
    "judged": 10,
    "service": 20,
    "conditions": 15,
    "feature_shards": 10,
    "frcnn": 10,
}  # cases of surfaces that load models, or walk through HDF5 files first; `python -m tools.fuzz` has no such bounds


@pytest.fixture(autouse=True)
def level_of_messages():
    """Surfaces silence mmgen's messages in this process; later tests of the same worker expect them."""
    level = logging.getLogger("mmgen").level
    yield
    logging.getLogger("mmgen").setLevel(level)


def test_an_unknown_surface_is_reported(monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["fuzz", "--surface", "recip"])
    with pytest.raises(SystemExit):
        fuzz_command()
    assert "--surface recip: unknown surface; did you mean 'recipe'?; choose from: recipe, " in capsys.readouterr().err


@pytest.mark.parametrize("name", all_surfaces())
def test_spoilt_files_are_refused_by_name_or_read_rightly(name, pytestconfig):
    cases = SLOW.get(name, 30) // (1 if pytestconfig.getoption("exhaustive") else 2)
    tally = fuzz(all_surfaces()[name], cases, seed=21, seconds=60)
    assert not tally.findings, tally.findings[0]
    assert tally.counts.total() == cases


def test_a_case_folder_is_whole_again_whatever_a_case_did(tmp_path):
    source = tmp_path / "whole"
    (source / "deep").mkdir(parents=True)
    (source / "a").write_bytes(b"one")
    (source / "deep/b").write_bytes(b"two")
    (source / "link").symlink_to("a")
    folder = CaseFolder(source, tmp_path / "case")

    def content():
        return {
            str(path.relative_to(folder.path)): path.readlink()
            if path.is_symlink()
            else path.is_file() and path.read_bytes()
            for path in folder.path.rglob("*")
        }

    folder.restore()
    before, number = content(), (folder.path / "deep/b").stat().st_ino
    assert before == {"a": b"one", "deep": False, "deep/b": b"two", "link": Path("a")}
    acts = [
        lambda path: (path / "a").write_bytes(b"eno"),  # as many bytes, at once
        lambda path: (path / "a").rename(path / "c"),
        lambda path: (path / "a").unlink() or (path / "a").mkdir(),
        lambda path: (path / "a").unlink() or (path / "a").symlink_to("deep/b"),
        lambda path: (path / "link").unlink() or (path / "link").symlink_to("b"),
        lambda path: (path / "deep/new/one").mkdir(parents=True),
        lambda path: (path / "a").chmod(0o444),
    ]
    for act in acts:
        act(folder.path)
        folder.restore()
        assert content() == before and os.access(folder.path / "a", os.W_OK)
    assert (folder.path / "deep/b").stat().st_ino == number  # what no case changed was not written again
    shutil.rmtree(folder.path / "deep")
    folder.restore()
    assert content() == before


@pytest.mark.parametrize("moment", ["at once", "later", "at once, with a slow clock"])
def test_a_change_that_sets_the_time_back_is_undone(moment, tmp_path, monkeypatch):
    source = tmp_path / "whole"
    source.mkdir()
    (source / "a").write_bytes(b"one")
    if moment.endswith("clock"):
        mark = case_folder._mark
        monkeypatch.setattr(case_folder, "_mark", lambda stat: (*mark(stat)[:3], stat.st_mode))
    folder = CaseFolder(source, tmp_path / "case")
    folder.restore()
    if moment == "later":
        time.sleep(2 * case_folder.TICK / 1e9)
        folder.restore()
        assert not folder._fresh
    for content in (b"eno", b"two"):
        (folder.path / "a").write_bytes(content)
        os.utime(folder.path / "a", ns=(case_folder.UNTOUCHED, case_folder.UNTOUCHED))
        folder.restore()
        assert (folder.path / "a").read_bytes() == b"one"


@pytest.mark.parametrize("surface, check", [("index", (IndexedStore, "_check")), ("data_cache", (Measures, "_check"))])
def test_damage_under_a_right_checksum_is_tried(surface, check, monkeypatch):
    monkeypatch.setattr(*check, lambda *_: None)
    monkeypatch.setattr(IndexedFile, "has_rows", lambda *_: True)
    assert fuzz(all_surfaces()[surface], 80).findings


def test_other_weights_texts_and_silent_commands_are_wrong_results(tmp_path, monkeypatch):
    surfaces = all_surfaces()
    path = tmp_path / "data.json"
    for folder, number in (("resumed", 1.0), ("runs/toy/default/seed-0/steps/both", 2.0)):
        (tmp_path / folder).mkdir(parents=True)
        save_file({"a": torch.tensor([number])}, tmp_path / folder / "weights.safetensors")
    monkeypatch.setattr("tools.fuzz.folders.runs", lambda: tmp_path)
    run = SimpleNamespace(finished=lambda step: True, step=lambda step: tmp_path / "resumed")
    with pytest.raises(AssertionError, match="other weights than without a stop"):
        surfaces["checkpoint"].check(path, run, {})
    with pytest.raises(AssertionError, match="'a dog' instead of 'a cat'"):
        surfaces["run_folder"].check(path, (None, "a dog"), {"text": "a cat"})
    internal = "error: the command 'judge' (judge, mmgen 1.0): its function raises RuntimeError: x"
    for code, output in ((0, " "), (1, "Error: x"), (2, "Usage"), (1, internal)):
        with pytest.raises(AssertionError):
            surfaces["commands"].check(path, SimpleNamespace(output=output, exit_code=code), {"arguments": []})


def test_the_fuzzer_finds_programs_and_files_elsewhere(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))  # a checkout may be in the folder of temporary files
    outside = Path(__file__).with_name("never written")
    beside = tempfile.gettempdir() + "x"
    acts = {
        "opened ": lambda: os.close(os.open(f"{beside}/never", os.O_WRONLY)),
        "never written": lambda: os.close(os.open(tmp_path / "never written", os.O_WRONLY)),
        "subprocess.Popen": lambda: subprocess.run(["true"], check=True),
        "os.system": lambda: os.system("true"),
        f"opened '{outside}' for writing": lambda: os.close(os.open(outside, os.O_WRONLY)),
        "os.mkdir": lambda: (outside / "below").mkdir(),
        "socket.getaddrinfo": lambda: socket.getaddrinfo("127.0.0.1", 1),
    }
    for event, act in acts.items():
        surface = replace(
            all_surfaces()["tsv"],
            spoil=lambda draw, folder, _: folder / "x",
            read=lambda path, _, act=act: suppressed(act),
            uncontrolled="a test",
        )
        (finding,) = fuzz(surface, 1).findings
        assert finding.outcome.kind == "does what reading must not do" and event in finding.outcome.message
    ways = {
        "../elsewhere": lambda folder: (folder / "../elsewhere").write_bytes(b""),
        "../whole/a": lambda folder: (folder / "a").rename(folder / "../whole/a"),
        "away": lambda folder: (folder / "away").symlink_to("../whole") or (folder / "away/b").write_bytes(b""),
        "os.rmdir": lambda folder: (folder / "../whole").rmdir(),
    }
    for event, way in ways.items():
        (finding,) = fuzz(
            replace(surface, read=lambda path, _, way=way: suppressed(partial(way, path.parent))), 1
        ).findings
        assert finding.outcome.kind == "does what reading must not do" and event in finding.outcome.message
    inside = replace(surface, read=inside_only, check=lambda *_: None)
    tally = fuzz(inside, 2)
    assert tally.counts["read"] == 2, tally.findings


def inside_only(path, _):
    """All that reading may do."""
    path.write_bytes(b"x")
    path.rename(path.with_name("y"))
    path.symlink_to("/etc/passwd")
    path.unlink()
    path.with_name("y").unlink()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryFile() as file:
        Path(folder, "x").write_bytes(b"x")
        file.write(b"x")
    Path(os.devnull).write_bytes(b"x")
    dataclasses.make_dataclass("Row", ["number"])
    importlib.reload(importlib.import_module("wave"))


@pytest.mark.parametrize("way", ["exec", "eval", "compile", "import", "ctypes", "pickle"])
def test_the_fuzzer_finds_code_that_is_run(way, monkeypatch):
    def spoil(draw, folder, _):
        (folder / "spoilt_module.py").write_text("number = 1")
        (folder / "lib.so").write_bytes(b"no library")
        (folder / "x").write_bytes(pickle.dumps(Path))
        return folder / "x"

    def read(path, _):
        monkeypatch.syspath_prepend(str(path.parent))
        with contextlib.suppress(OSError):
            {
                "exec": lambda: exec("number = 1"),
                "eval": lambda: eval("1 + 1"),
                "compile": lambda: compile("1", str(path), "eval"),
                "import": lambda: importlib.import_module("spoilt_module"),
                "ctypes": lambda: ctypes.CDLL(str(path.with_name("lib.so"))),
                "pickle": lambda: pickle.loads(path.read_bytes()),
            }[way]()

    surface = replace(all_surfaces()["tsv"], spoil=spoil, read=read, check=lambda *_: None, uncontrolled="a test")
    (finding,) = fuzz(surface, 1).findings
    assert finding.outcome.kind == "does what reading must not do"


def test_every_surface_gets_a_thousand_of_a_million():
    names = all_surfaces()
    batches = {name: BATCHES.get(name, BATCHES[""]) for name in names}
    rounds = 1_000_000 // sum(batches.values())
    assert min(batches.values()) * rounds >= 1000 and {*BATCHES} - {""} <= {*names}


def test_a_finding_says_the_command_that_repeats_it(tmp_path, monkeypatch, capsys):
    bad = replace(
        all_surfaces()["tsv"],
        spoil=lambda draw, folder, _: folder / "x",
        read=lambda *_: 1 / 0,
        uncontrolled="a test",
    )
    monkeypatch.setattr("tools.trials.fuzz.all_surfaces", lambda: {"tsv": bad})
    monkeypatch.setitem(BATCHES, "tsv", 2)
    with trial.opened(5, tmp_path) as case:
        lines = case(1).wrong
    again = "python -m tools.fuzz --surface tsv --case {} --seed 5: traceback: ZeroDivisionError"
    assert [line.startswith(again.format(number)) for number, line in zip((2, 3), lines, strict=True)] == [True] * 2
    monkeypatch.setattr("tools.fuzz.__main__.all_surfaces", lambda: {"tsv": bad})
    monkeypatch.setattr("sys.argv", ["fuzz", "--cases", "2", "--seed", "5"])
    assert fuzz_command() == 1
    assert "python -m tools.fuzz --surface tsv --case 0 --seed 5 (2 alike): traceback" in capsys.readouterr().err


def suppressed(act):
    with contextlib.suppress(OSError):
        act()


def test_a_case_is_a_function_of_its_number(tmp_path):
    surface = all_surfaces()["answer_shards"]
    together = Bench(surface, tmp_path / "a")
    alone = Bench(surface, tmp_path / "b")
    contents = [read_all(together, number) for number in range(12)]
    assert [read_all(alone, number) for number in (11, 3)] == [contents[11], contents[3]]
    assert contents[3] != contents[11]


def read_all(bench, number):
    bench.spoil(number)
    return {path.name: path.read_bytes() for path in bench.folder.path.iterdir()}


def test_the_fuzzer_tells_what_is_wrong_with_a_message():
    path = Path("/x/file.json")
    assert judge("/x/file.json:3: no text", path) == ""
    assert judge("/x/file.json: no text", path, placed=r":\d+") == "message without a place"
    assert judge("no text", path) == "message that does not name the file"
    assert judge("/x/file.json: a\nb", path) == "message of 2 lines"
    assert judge("/x/file.json: metric 'a' (b 1): build raises KeyError: 'x'", path) == "internal error of a part"
    assert judge("/x/file.json: \x1b[2J", path) == "message with control characters"
    assert judge("/x/file.json: " + "x" * 2000, path) == "message without end"


def test_the_fuzzer_finds_tracebacks_wrong_results_crashes_and_hangs():
    acts = {
        lambda: 1 / 0: 60.0,
        lambda: None: 60.0,
        lambda: os._exit(3): 60.0,
        lambda: time.sleep(600): 0.1,
        lambda: sum(iter(int, 1)): 0.1,
    }
    base = replace(
        all_surfaces()["tsv"],
        spoil=lambda draw, folder, _: folder / "x",
        check=lambda *_: (_ for _ in ()).throw(AssertionError("other")),
        uncontrolled="a test",
    )
    kinds = [
        fuzz(replace(base, read=lambda path, _, act=act: act()), 1, seconds=seconds).findings[0].outcome.kind
        for act, seconds in acts.items()
    ]
    assert kinds == [
        "traceback: ZeroDivisionError",
        "wrong result",
        "crash",
        "hang of over 1 s",
        "hang of over 0.1 s of processor time",
    ]


def test_a_reader_that_refuses_everything_is_found(tmp_path):
    """Its messages may be right. A control is run once, and is no input."""

    def refuse(path, _):
        raise DataError(f"{path}:1: no")

    surface = replace(all_surfaces()["answer_shards"], read=refuse)
    bench = Bench(surface, tmp_path)
    tally = bench.run(0, 2)
    assert [(finding.number, finding.outcome.kind) for finding in tally.findings] == [
        (harness.CONTROL, "the whole files are refused")
    ]
    assert tally.counts.total() == 2 and not bench.run(2, 4).findings
    assert not fuzz(replace(surface, uncontrolled="a test"), 2).findings


def test_two_changes_of_one_store_do_not_crash_the_fuzzer():
    """The first makes texts of the labels, the second writes a number."""
    assert not fuzz(all_surfaces()["feature_shards"], 1, seed=71, first=185).findings


def test_a_case_that_waits_for_a_processor_does_not_hang(monkeypatch):
    """The limit is one of processor time. Counts may be read while the child writes them, as zeros."""
    counts = harness._Child.counts
    unpacked = iter([(0,) * len(counts.unpack(bytes(counts.size)))] * 2)
    torn = SimpleNamespace(
        size=counts.size,
        pack_into=counts.pack_into,
        unpack_from=lambda shared: next(unpacked, None) or counts.unpack_from(shared),
    )
    monkeypatch.setattr(harness._Child, "counts", torn)
    base = replace(all_surfaces()["tsv"], spoil=lambda draw, folder, _: folder / "x", check=lambda *_: None)
    assert fuzz(replace(base, read=lambda path, _: time.sleep(0.3)), 1, seconds=0.1).counts["read"] == 1
