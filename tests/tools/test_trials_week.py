"""The trial of a week: a case is a job; the folder stays for the next call, in which a failed job runs again."""

from pathlib import Path

from tools.trials import week
from tools.trials.__main__ import main
from tools.week.steps import Job, Shell


def test_jobs_go_on_in_their_folder(tmp_path, monkeypatch, capsys):
    steps = (Shell("echo one > one"), Shell("cat one two"))
    monkeypatch.setattr(week, "JOBS", [Job("write", steps[:1]), Job("read", steps)])
    monkeypatch.setattr(week, "COUNT", 2)
    monkeypatch.setattr("tools.week.__main__.PROGRAMS", {})
    arguments = ["week", "--folder", str(tmp_path)]
    assert main([*arguments, "--count", "1"]) == 1 and "not tried: read; choose a larger" in capsys.readouterr().out
    assert main(arguments) == 1
    printed = capsys.readouterr().out
    assert "wrong: read, case 1: read: cat one two\n" in printed and "read: ended with 1" in printed
    Path(tmp_path, "week-0/two").write_text("two")
    assert main([*arguments, "--again"]) == 0
    assert "| all | 2 | 0 |" in capsys.readouterr().out
