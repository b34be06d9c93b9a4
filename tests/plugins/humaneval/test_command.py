"""The command `mmgen judge`: options, tables and files."""

import json
import shutil

import pytest
from kit.humaneval import answer, command, write, write_run
from mmgen_humaneval.form import make
from mmgen_humaneval.systems import gather

from mmgen import RunError
from mmgen.registry import installed

pytestmark = pytest.mark.slow


def test_options_that_cannot_make_a_sheet_are_reported(run, tmp_path):
    out = tmp_path / "s.html"
    for arguments, message in (
        ((run, "--n", 9), "--n 9: only 8 test examples have a question by people"),
        ((run, "--step", "none"), "--step: no step 'none' has generated texts; choose from: zebrastep, quaggastep"),
        ((run, "--out", "s.txt"), "--out s.txt: file name must end in .html"),
        ((run, "--out", ".html"), "--out .html: file name must end in .html"),
        ((tmp_path,), f"{tmp_path}: no recipe.json in this folder; name a run folder (runs/<name>/<profile>/seed-<n>)"),
    ):
        result = command("make", "--out", out, *arguments, *(() if "--n" in arguments else ("--n", 2)))
        assert (result.exit_code, result.output) == (1, f"error: {message}\n")
    assert command("make", run, "--n", 2, "--out", out).exit_code == 0
    result = command("make", run, "--n", 2, "--out", out)
    assert (
        result.output
        == f"error: {out}: already exists, and judges may be filling it; choose another name for --out, or delete it\n"
    )
    (tmp_path / "o.key.json").write_text("{}")
    key = tmp_path / "o.key.json"
    assert command("make", run, "--n", 2, "--out", tmp_path / "o.html").output.endswith(
        f"error: {key}: already exists for a different sheet; choose another name for --out, or delete it\n"
    )
    empty = write_run(tmp_path / "empty")
    shutil.rmtree(empty / "steps")
    result = command("make", empty, "--out", tmp_path / "other.html")
    assert result.output == f"error: {empty}: no step has generated texts yet; continue the run with `mmgen run`\n"


def test_the_same_command_continues_after_a_full_disk(run, tmp_path, monkeypatch):
    material = gather([run], (), installed())
    with monkeypatch.context() as full:
        full.setattr("mmgen_humaneval.form.write_text", lambda path, text: (_ for _ in ()).throw(RunError("full")))
        with pytest.raises(RunError, match="full"):
            make(material, tmp_path / "s.html", count=2)
    assert [path.name for path in tmp_path.iterdir()] == ["s.key.json"]
    with pytest.raises(RunError, match="for a different sheet"):
        make(material, tmp_path / "s.html", count=3)
    assert make(material, tmp_path / "s.html", count=2).page.exists()


def test_input_files_are_not_overwritten(key, tmp_path):
    sheet, before = write(tmp_path / "first.json", answer("first", [1, 4, 2, 5, 1, 5, 3])), key.read_bytes()
    for path in (key, sheet):
        result = command("score", key, sheet, "--json", path)
        message = f"error: --json {path}: is also an input file and would be overwritten; choose another name\n"
        assert (result.output, result.exit_code) == (message, 1)
    assert key.read_bytes() == before


def test_the_command_prints_the_papers_table(key, tmp_path):
    sheets = [
        write(tmp_path / f"{name}.json", answer(name, values))
        for name, values in (
            ("first", [1, 4, 2, 5, 1, 5, 3]),
            ("second", [2, 5, 2, 5, 2, 4, 3]),
            ("third", [1, 5, 1, 5, 1, 5, 4]),
        )
    ]
    result = command("score", key, *sheets, "--json", tmp_path / "o.json")
    assert result.exit_code == 0, result.output
    saved = json.loads((tmp_path / "o.json").read_text())
    cell = saved["systems"]["model"]["readability"]
    lines = result.output.splitlines()
    assert lines[0].split("|")[1:4] == [" system ", "  readability ", "     p "]
    assert lines[2].split() == [
        "|",
        "model",
        "|",
        f"{cell['mean']:.2f}",
        "±",
        f"{cell['deviation']:.2f}",
        "|",
        f"{cell['p']:.3f}",
        "|",
    ]
    assert lines[3].split()[1] == "human" and lines[3].split()[-2] == "-"
    assert (
        lines[5]
        == "3 judges, 4 pictures, 7 different questions, ratings 1 to 5; mean ± standard deviation over pictures, of "
        "the judges' mean"
    )
    assert lines[7] == f"agreement, Krippendorff's alpha (ordinal): readability {saved['agreement']['readability']:.2f}"
    assert lines[8] == "first gave 3.00 on average" and saved["missing"] == 0
