"""The trials: every piece runs a few cases, goes on where it ended, and reports what is wrong."""

import json
import re
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from mmgen.files import locked
from tools.fuzz import Bench, all_surfaces
from tools.trials import fuzz, piece, suite
from tools.trials.__main__ import main


def counting(wrong_case: int = -1, tries: int = 2) -> SimpleNamespace:
    """A piece of two surfaces; `numbers` are those of its cases. One case may be wrong."""
    numbers: list[int] = []

    def case(number):
        numbers.append(number)
        wrong = ("a file is left over",) if number == wrong_case else ()
        return piece.Outcome("ab"[number % 2], tries, wrong)

    @contextmanager
    def opened(seed, folder):
        yield case

    cycle = ["a", "b"]
    return SimpleNamespace(TRIES="kills", COUNT=6, KEEPS=False, opened=opened, cycle=lambda: cycle, numbers=numbers)


def test_a_second_call_goes_on_where_the_first_one_ended(tmp_path):
    module, path = counting(wrong_case=1), tmp_path / "t.jsonl"
    lines: list[str] = []
    piece.run(module, piece.Journal(path, 0), 4, 60, tmp_path, lines.append)
    path.write_text(path.read_text() + '{"seed": 0, "cas')  # a kill leaves half a line
    journal = piece.Journal(path, 0)
    piece.run(module, journal, 9, 60, tmp_path, lines.append)
    assert module.numbers == [0, 1, 2, 3, 4] and [json.loads(line)["case"] for line in path.open()] == [0, 1, 2, 3, 4]
    assert lines == ["b, case 1: a file is left over"] == journal.wrong
    assert [line.rpartition("|")[0].split("|")[1:4] for line in journal.table("kills").splitlines()[2:]] == [
        [" a ", " 6 ", " 0 "],
        [" b ", " 4 ", " 1 "],
        [" all ", " 10 ", " 1 "],
    ]
    assert piece.Journal(path, 1).tries == 0  # another seed begins at its first case


def test_no_case_begins_when_the_time_is_over(tmp_path):
    module = counting()
    piece.run(module, piece.Journal(tmp_path / "t.jsonl", 0), 4, 0, tmp_path)
    assert module.numbers == []


@pytest.mark.parametrize(("wrong_case", "code"), [(-1, 0), (2, 1)])
def test_the_exit_code_says_whether_something_is_wrong(tmp_path, monkeypatch, capsys, wrong_case, code):
    monkeypatch.setattr("importlib.import_module", lambda name: counting(wrong_case))
    for _ in range(2):  # the second call has nothing left to do, and says the same
        assert main(["fuzz", "--folder", str(tmp_path)]) == code
    assert ("\nwrong: a, case 2: a file is left over\n" in capsys.readouterr().out) == bool(code)


def test_cases_that_are_left_have_an_exit_code_and_a_line(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.import_module", lambda name: counting())
    assert main(["fuzz", "--folder", str(tmp_path), "--minutes", "0"]) == 3
    assert capsys.readouterr().out.endswith("\n0 of 6 kills are done; the same command goes on\n")


def test_a_surface_without_a_try_is_reported(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("importlib.import_module", lambda name: counting())
    assert main(["fuzz", "--folder", str(tmp_path), "--count", "2"]) == 1
    assert capsys.readouterr().out.endswith("\nnot tried: b; choose a larger --count\n")
    assert main(["fuzz", "--folder", str(tmp_path), "--count", "4"]) == 0
    assert "not tried" not in capsys.readouterr().out


def test_cases_without_a_kill_are_no_try(tmp_path):
    journal = piece.Journal(tmp_path / "t.jsonl", 0, ["a", "b"])
    journal.add(0, piece.Outcome("a", 2), 0.1)
    journal.add(1, piece.Outcome("b", 0), 0.1)
    assert journal.untried == ["b"]


def test_wrong_cases_run_again_and_their_later_line_counts(tmp_path, monkeypatch, capsys):
    first, second, arguments = counting(wrong_case=1), counting(), ["fuzz", "--folder", str(tmp_path)]
    modules = iter((first, second, second))
    monkeypatch.setattr("importlib.import_module", lambda name: next(modules))
    assert main(arguments) == 1 and main([*arguments, "--again"]) == 0
    assert (first.numbers, second.numbers) == ([0, 1, 2], [1])
    lines = [json.loads(line) for line in (tmp_path / "fuzz.jsonl").open()]
    assert [(line["case"], bool(line["wrong"])) for line in lines] == [(0, False), (1, True), (2, False), (1, False)]
    assert main([*arguments, "--again"]) == 0 and second.numbers == [1]
    assert "| all | 6 | 0 |" in capsys.readouterr().out


def test_a_line_says_its_commit(tmp_path, monkeypatch, capsys):
    """Also beside lines of older versions, which lack it."""
    path = tmp_path / "fuzz.jsonl"
    piece.Journal(path, 0, ["a", "b"]).add(0, piece.Outcome("a", 2), 0.1)
    old = json.loads(path.read_text())
    assert re.fullmatch(r"[0-9a-f]{7,}\+?", old["commit"])
    path.write_text(json.dumps({name: value for name, value in old.items() if name not in ("commit", "sizes")}) + "\n")
    monkeypatch.setattr("importlib.import_module", lambda name: counting())
    monkeypatch.setattr(piece, "commit", lambda: "0123abc+")
    assert main(["fuzz", "--folder", str(tmp_path)]) == 0
    assert "\ncases by commit: an unknown commit: 1, 0123abc+: 2\n" in capsys.readouterr().out


def test_sizes_are_not_added_up(tmp_path):
    journal = piece.Journal(tmp_path / "t.jsonl", 0)
    for number, (megabytes, passed) in enumerate(((5, 3), (7, 4), (6, 5))):
        journal.add(number, piece.Outcome("a", 1, parts={"passed": passed}, sizes={"MB": megabytes}), 0.1)
    header, _, row, total = journal.table("installs").splitlines()
    assert header.endswith("| passed | largest MB |") and row.endswith("| 12 | 7 |") and total.endswith("| 12 | 7 |")


def test_a_journal_of_other_cases_is_refused(tmp_path):
    """Their numbers would stand for others, and some would be counted twice."""
    path = tmp_path / "t.jsonl"
    piece.Journal(path, 0, ["a", "b"]).add(0, piece.Outcome("a", 1), 0.1)
    assert piece.Journal(path, 0, ["a", "b"]).tries == 1 and piece.Journal(path, 1, ["a"]).tries == 0
    with pytest.raises(SystemExit, match="t.jsonl:1: the cases of seed 0 were others then; choose another --seed or"):
        piece.Journal(path, 0, ["a", "c", "b"])


def test_two_trials_do_not_write_one_journal(tmp_path, monkeypatch):
    monkeypatch.setattr("importlib.import_module", lambda name: counting())
    message = r"^error: .*fuzz.jsonl is in use by process \d+ on "
    with locked(tmp_path / "fuzz.lock", lambda holder: None), pytest.raises(SystemExit, match=message):
        main(["fuzz", "--folder", str(tmp_path)])


def test_a_case_of_the_fuzzer_is_a_batch_of_one_surface(tmp_path, monkeypatch):
    surfaces = {name: all_surfaces()[name] for name in ("answers_file", "answer_shards")}
    monkeypatch.setattr(fuzz, "all_surfaces", lambda: surfaces)
    monkeypatch.setattr(fuzz, "BATCHES", {"": 9, "answer_shards": 7})
    monkeypatch.setattr(fuzz, "warm", lambda: None)
    path = tmp_path / "fuzz.jsonl"
    piece.run(fuzz, piece.Journal(path, 3), 25, 60, tmp_path, lambda text: None)
    outcomes = [json.loads(line) for line in path.open()]
    assert [(line["surface"], line["tries"]) for line in outcomes] == [
        ("answers_file", 9),
        ("answer_shards", 7),
        ("answers_file", 9),
    ]
    parts = [line["parts"] for line in outcomes]
    assert all(part["refused"] + part["read"] == line["tries"] for part, line in zip(parts, outcomes, strict=True))
    second = Bench(surfaces["answers_file"], tmp_path, 3).run(9, 18)
    assert {kind: second.counts[kind] for kind in ("refused", "read")}.items() <= parts[2].items()
    table = piece.Journal(path, 3).table("inputs").splitlines()
    assert table[0] == "| surface | inputs | wrong | seconds | slowest case, s | refused | read | processor ms |"
    assert table[-1].startswith("| all | 25 | 0 | ")


def test_phases_have_a_table(tmp_path):
    journal = piece.Journal(tmp_path / "t.jsonl", 0)
    journal.add(0, piece.Outcome("a", 1), 0.1)
    assert journal.phase_table("kills") == ""
    for number, phases in enumerate(({"writing": 1, "learning": 2}, {"writing": 1}), 1):
        journal.add(number, piece.Outcome("run", sum(phases.values()), phases=phases), 0.1)
    for known in (journal, piece.Journal(tmp_path / "t.jsonl", 0)):
        assert known.phase_table("kills").splitlines() == [
            "| surface | phase | kills |",
            "|---|---|---:|",
            "| run | learning | 2 |",
            "| run | writing | 2 |",
        ]


@pytest.mark.slow
def test_a_test_that_fails_is_counted_by_name(tmp_path):
    (tmp_path / "test_t.py").write_text("def test_good(): pass\ndef test_bad(): assert False\n")
    arguments = ["-c", "/dev/null", "--rootdir", str(tmp_path), str(tmp_path / "test_t.py")]
    (failure,) = suite.tests(arguments).wrong
    assert failure.endswith("test_t.py::test_bad failed")
    outcome = suite.tests([*arguments, "-k", "good"])
    assert outcome.wrong == () and outcome.parts == {"passed": 1}
