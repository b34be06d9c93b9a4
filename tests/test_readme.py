"""The README's code and commands run as written."""

import re
from pathlib import Path

import pytest
from kit.thirdparty import settings
from kit.toys import mmgen_here

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SNIPPETS = re.findall(r"```python\n(.*?)```", README, re.S)


def test_there_are_two_commands_to_begin_with_and_ci_runs_the_second():
    first, second = re.findall(r"^python3 .*$", README, re.M)
    assert "mmgen run recipes/bertgen_vqa.toml" in first and "pytest" in second
    assert f"command='{second}'\n" in (ROOT / ".ci/run").read_text(encoding="utf-8")


def test_a_model_composed_in_python_trains_and_writes(capsys):
    exec(compile(SNIPPETS[0], "README.md", "exec"), {})
    printed = capsys.readouterr().out
    assert "how many cats are there?" in printed
    assert "what color is the ball?" in printed or "is the dog big?" in printed


def test_the_plugin_is_that_of_the_tutorial_which_runs():
    assert SNIPPETS[2] in (ROOT / "docs/extend/tutorial.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def sample(tmp_path_factory, no_page) -> Path:
    """The main job in the README's folder, with very little training data."""
    folder = tmp_path_factory.mktemp("sample")
    small = [
        "data.train_size=8",
        "data.val_size=2",
        "data.test_size=4",
        "training.epochs=1",
        "steps.image_frozen.training.epochs=1",
        "steps.image.training.epochs=1",
        "steps.both.training.epochs=1",
        "backbone.hidden_size=32",
        "backbone.num_attention_heads=4",
        "data.image_size=64",
        "inputs.image.extractor.model=test_resnet",
        "inputs.image.extractor.image_size=64",
        "metrics.overlap.meteor=false",
        "metrics.overlap.tokenizer=own",
    ]
    done = mmgen_here(folder, "run", ROOT / "recipes/bertgen_vqa.toml", *settings(*small))
    assert done.returncode == 0, done.stderr
    return folder


def test_the_main_job_fills_five_rows(sample):
    table = (sample / "runs/bertgen_vqa/sample/seed-0/table.md").read_text()
    rows = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("| ")]
    assert rows == ["step", "caption", "image_frozen", "image", "both", "both_scratch", "people", "chance"]


def test_a_finished_run_is_loaded(sample, monkeypatch):
    monkeypatch.chdir(sample)
    names: dict = {}
    exec(compile(SNIPPETS[1], "README.md", "exec"), names)
    assert len(names["answers"]) == 4
