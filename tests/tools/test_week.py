"""The week of three people: every step that names a page is on it, and jobs are done, kept and counted."""

import json

import pytest
from click.testing import CliRunner

from tools.week import __main__ as week
from tools.week import coverage
from tools.week.steps import TINY, Code, File, Job, Shell, block_with, from_prompts

JOBS = [job for jobs in week.PEOPLE.values() for job in jobs]
STEPS = [(job.name, step) for jobs in week.PEOPLE.values() for job in jobs for step in job.steps]


def test_steps_are_on_the_pages_that_they_name():
    assert [(job, step) for job, step in STEPS if step.page and not step.in_page()] == []


def test_a_step_that_a_page_does_not_have_is_noticed():
    assert not Shell("mmgen run nothing.toml", "README.md").in_page()
    assert not Code("not_in(the_page)", "docs/api.md").in_page() and not File("none.toml", "docs/recipes.md").in_page()


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
