"""The week of three people: every step that names a page is on it, and jobs are done, kept and counted."""

import json
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tools.week import __main__ as week
from tools.week import coverage
from tools.week.steps import TINY, Code, File, Job, Shell, block_with, from_prompts, missing

JOBS = [job for jobs in week.PEOPLE.values() for job in jobs]
STEPS = [(job.name, step) for jobs in week.PEOPLE.values() for job in jobs for step in job.steps]


def test_steps_are_on_the_pages_that_they_name():
    assert [(job, step) for job, step in STEPS if step.page and not step.in_page()] == []


def test_a_step_that_a_page_does_not_have_is_noticed():
    assert not Shell("mmgen run nothing.toml", "README.md").in_page()
    assert not Code("not_in(the_page)", "docs/api.md").in_page() and not File("none.toml", "docs/recipes.md").in_page()


def test_every_name_of_a_step_is_in_its_command():
    steps = [(job, step) for job, step in STEPS if isinstance(step, Shell)]
    assert [(job, step.command, name) for job, step in steps for name in step.stale_names()] == []
    assert Shell("mmgen run a", names={"a": "b", "c": "d"}).stale_names() == ["c"]
    assert Shell("run --type a --set b", names={"--type a --set b": "c", "--type a": "d"}).stale_names() == ["--type a"]


def test_an_output_without_what_a_step_shows_is_noticed():
    step = Shell("mmgen features index", shows=("20 vectors", "0 of them new"))
    assert missing(step, "20 vectors, 0 of them new\n") == ""
    assert missing(step, "20 vectors, 3 of them new\n") == "its output does not have '0 of them new'"
    assert "error: no such" in missing(step, "20 vectors, 0 of them new\nerror: no such file\n")
    assert "Traceback" in missing(Code(content="a"), "Traceback (most recent call last):\n  File\n")
    assert missing(Code(content="a"), "no error: none\n") == ""


def test_steps_without_a_page_have_text_of_their_own():
    assert [job for job, step in STEPS if not step.page and not step.text()] == []


def test_jobs_use_everything_that_has_no_exception():
    assert coverage.not_used(JOBS) == []


def test_what_no_job_uses_is_noticed():
    jobs = [job for job in JOBS if "mmgen compare" not in "".join(step.text() for step in job.steps)]
    assert ("command", "compare") in coverage.not_used(jobs)


def test_exceptions_exist_and_no_job_uses_them():
    everything, uses = coverage.existing(), coverage.used(JOBS)
    for kind, reasons in coverage.EXCEPTIONS.items():
        assert sorted(reasons.keys() - everything[kind]) == [], kind
        assert sorted(reasons.keys() & uses[kind]) == [], kind
    done = CliRunner().invoke(week.week, ["--list"])
    assert "- no job uses the command push: needs the hub" in done.output


def test_uses_are_read_from_recipes_and_their_profiles():
    file = File("mine.toml", content='[generator]\ntype = "causal"\n[profiles.a.data]\ntype = "archives"\n')
    run = Shell("mmgen run mine.toml --profile a")
    uses = coverage.used([Job("a", (file, run))])
    assert uses["plugin"] == {"mmgen_causal", "mmgen_streams"} and uses["command"] == {"run"}
    assert coverage.used([Job("b", (file,))])["plugin"] == {"mmgen_causal"}
    uses = coverage.used([Job("c", (Shell("mmgen run recipes/bertgen_vqa_grid.toml"),))])
    assert uses["recipe"] == {"bertgen_vqa_grid.toml", "bertgen_vqa.toml"} and "mmgen_grid" in uses["plugin"]


def test_a_job_has_its_own_name():
    names = [job.name for job in JOBS]
    assert len({*names}) == len(names)


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
    assert week.line(Shell("mmgen run b", small=("jobs=1",)), job) == (
        "mmgen run b --set training.epochs=1 --set jobs=1"
    )
    assert week.line(Shell("mmgen info RUN", names={"RUN": "runs/a"}), job) == "mmgen info runs/a"
    assert "data.train_size=32" in TINY


def test_prompts_and_printed_lines_are_left_out():
    assert from_prompts(">>> for a in b:\n...     print(a)\n1\n2\n>>> c\n3\n") == "for a in b:\n    print(a)\nc\n"
    assert block_with("docs/index.md", "# first.toml").startswith("# first.toml\n")
    assert File("wanted.jsonl", "docs/index.md").text().startswith('{"image": "photo.jpg", ')


def test_code_is_that_of_a_job_and_then_the_blocks_of_a_page():
    line = '>>> run = load_run("runs/first/default/seed-0", step="both", threads=2, warm=True)'
    assert Code(line, "docs/api.md", "import torch\n").text().startswith("import torch\nfrom mmgen.inference.load ")
    everything = Code(Code.ALL, "docs/api.md")
    assert everything.in_page() and everything.text().startswith("# without_a_recipe.py\n")
    assert everything.text().endswith("print(finished.path)\n") and not Code(Code.ALL, "docs/keys.md").in_page()


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


def shell_job(folder, command, **fields):
    """Does a job of one command in a desk without programs."""
    (folder / ".venv/bin").mkdir(parents=True, exist_ok=True)
    return week.Desk(folder).do(Job("one", (Shell(command),), **fields))


def test_a_step_over_its_limit_is_killed_with_its_children(tmp_path, monkeypatch):
    monkeypatch.setattr(week, "LIMIT", 0.3)
    with pytest.raises(click.ClickException, match="one: killed after 0.3 seconds"):
        shell_job(tmp_path, "sleep 60 & echo $! > child; wait")
    child = int((tmp_path / "child").read_text())
    for _ in range(500):
        stat = Path(f"/proc/{child}/stat")
        if not stat.exists() or stat.read_text().split()[2] == "Z":
            break
        time.sleep(0.01)
    else:
        pytest.fail("the child of the step still runs")


def test_what_a_failed_attempt_has_made_is_removed(tmp_path):
    (tmp_path / ".venv/bin").mkdir(parents=True)
    pip = tmp_path / ".venv/bin/pip"
    pip.write_text('#!/bin/sh\necho "$@" >> uninstalled\n')
    pip.chmod(0o755)
    with pytest.raises(click.ClickException, match="one: ended with 3"):
        shell_job(tmp_path, "mkdir made && exit 3", makes=("made",))
    shell_job(tmp_path, "mkdir made", makes=("made",))
    assert (tmp_path / "uninstalled").read_text() == "uninstall -q -y made\n"


def test_every_new_package_can_be_made_again():
    for job in JOBS:
        texts = [step.text() for step in job.steps if isinstance(step, Shell)]
        new = [f"mmgen-{text.split()[3]}" for text in texts if text.startswith("mmgen plugin new ")]
        assert {*new} <= {*job.makes}, job.name


def test_runs_that_were_moved_away_are_put_back_by_a_step_that_fails(tmp_path):
    step = next(step for _, step in STEPS if isinstance(step, Shell) and "mv runs runs_away" in step.command)
    for name in ("runs", "questions"):
        (tmp_path / name).mkdir()
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(click.ClickException):
        shell_job(tmp_path, step.text().replace("mmgen generate", "false"))
    assert (tmp_path / "runs").is_dir() and not (tmp_path / "runs_away").exists()
