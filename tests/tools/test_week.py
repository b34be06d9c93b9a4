"""The week of three people: every step that names a page is on it, and jobs are done, kept and counted."""

import json

import pytest
from click.testing import CliRunner

from tools.week import __main__ as week
from tools.week.steps import TINY, Code, File, Job, Shell, block_with, from_prompts

STEPS = [(job.name, step) for jobs in week.PEOPLE.values() for job in jobs for step in job.steps]


def test_steps_are_on_the_pages_that_they_name():
    assert [(job, step) for job, step in STEPS if step.page and not step.in_page()] == []


def test_a_step_that_a_page_does_not_have_is_noticed():
    assert not Shell("mmgen run nothing.toml", "README.md").in_page()
    assert not Code("not_in(the_page)", "docs/api.md").in_page() and not File("none.toml", "docs/recipes.md").in_page()


def test_steps_without_a_page_have_text_of_their_own():
    assert [job for job, step in STEPS if not step.page and not step.text()] == []


def test_jobs_come_after_those_that_they_need():
    done: set[str] = set()
    for _, job in week.chosen(None):
        assert {*job.needs} <= done, job.name
        done.add(job.name)
    names = [job.name for _, job in week.chosen("engineer")]
    assert "a recipe of one's own, three seeds" in names and "the systems of the paper's tables" not in names


def test_every_run_of_a_line_is_made_small():
    job = Job("a", (), small=("training.epochs=1",))
    assert week.line(Shell("for a in b; do mmgen run $a; done"), job) == (
        "for a in b; do mmgen run $a --set training.epochs=1; done"
    )
    assert week.line(Shell("mmgen info RUN", names={"RUN": "runs/a"}), job) == "mmgen info runs/a"
    assert "data.train_size=32" in TINY


def test_prompts_and_printed_lines_are_left_out():
    assert from_prompts(">>> for a in b:\n...     print(a)\n1\n2\n>>> c\n3\n") == "for a in b:\n    print(a)\nc\n"
    assert block_with("docs/index.md", "# first.toml").startswith("# first.toml\n")


@pytest.mark.slow
def test_jobs_are_done_once_and_counted(tmp_path, monkeypatch):
    steps = (
        File("a/b.txt", content="text"),
        Shell("test -e a/b.txt; mmgen --version >> said.txt"),
        Code(content="print(1)"),
    )
    jobs = (Job("write", steps, ("a detour",)), Job("read", (Shell("cat said.txt"),), needs=("write",)))
    monkeypatch.setattr(week, "PEOPLE", {"researcher": jobs})
    for _ in range(2):
        done = CliRunner().invoke(week.week, ["--folder", str(tmp_path)])
        assert done.exit_code == 0, done.output
    assert len((tmp_path / "said.txt").read_text().splitlines()) == 1
    took = json.loads((tmp_path / "seconds.json").read_text())
    assert [*took] == ["write", "read"] and took["write"]["processor"] > 0
    rows = [line.split(" | ")[:5] for line in done.output.splitlines() if line.startswith("| researcher")]
    assert rows == [["| researcher", "write", "3", "3", "1"], ["| researcher", "read", "1", "1", "0"]]
    assert any(line.startswith("|  | 2 jobs | 4 | 4 | 1 | ") for line in done.output.splitlines())
    assert done.output.splitlines()[-1] == "- write: a detour"


@pytest.mark.slow
def test_a_step_that_fails_is_shown_with_its_output(tmp_path, monkeypatch):
    job = Job("wrong", (Shell("mmgen show nothing"),))
    monkeypatch.setattr(week, "PEOPLE", {"researcher": (job,)})
    done = CliRunner().invoke(week.week, ["--folder", str(tmp_path)])
    assert done.exit_code == 1 and "wrong: mmgen show nothing" in done.output and "error: nothing" in done.output
    assert not (tmp_path / "seconds.json").exists()
