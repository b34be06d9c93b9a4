"""A run with prompts, from the recipe to the command line, Python and an export."""

import json

import pytest
from kit import toys

from mmgen.inference.load import load, load_run

pytestmark = pytest.mark.usefixtures("no_page")
PROMPTS = ("answer: red", "form: where")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("prompted")
    recipe = toys.recipe(data={"type": "scene_prompts"}, metrics={"obedience": {"type": "obedience"}})
    (folder / "toy.toml").write_text(recipe)
    done = toys.mmgen_here(folder, "run", "toy.toml")
    assert done.returncode == 0, done.stderr
    return folder


def test_a_run_writes_for_its_prompts_and_scores_obedience(folder):
    run = folder / toys.PLACE
    lines = [json.loads(line) for line in (run / "steps/second/generations.jsonl").read_text().splitlines()]
    examples = [json.loads(line) for line in (run / "examples.jsonl").read_text().splitlines()]
    assert [text["prompt"] for (text,) in lines] == [example["labels"]["prompt"][0] for example in examples]
    header = (run / "table.md").read_text().splitlines()[2]
    assert "obedience_answer" in header and "obedience_form" in header


def test_the_command_line_takes_prompts_and_texts_to_avoid(folder):
    arguments = ["generate", str(toys.PLACE), "--caption", "a red dog"]
    done = toys.mmgen_here(folder, *arguments, "--prompt", PROMPTS[0], "--prompt", PROMPTS[1], "--n", "3")
    assert done.returncode == 0, done.stderr
    texts = done.stdout.splitlines()[1:]
    assert [line.rpartition("(")[2] for line in texts] == [f"{prompt})" for prompt in PROMPTS for _ in range(3)]
    texts = load_run(folder / toys.PLACE).ask(caption="a red dog", n=3, candidates=20).texts
    first = next(text.text for text in texts if text.text)
    done = toys.mmgen_here(folder, *arguments, "--n", "3", "--avoid", first, "--out", "texts.jsonl")
    assert done.returncode == 0, done.stderr
    written = [text["text"] for text in json.loads((folder / "texts.jsonl").read_text())["texts"]]
    assert len({*written}) == 3 and first not in written


def test_python_and_an_export_write_what_the_run_writes(folder):
    run = load_run(folder / toys.PLACE)
    texts = run.ask(caption="a red dog", prompt=list(PROMPTS)).texts
    assert [text.prompt for text in texts] == list(PROMPTS)
    exported = load(run.save(folder / "export"))
    assert exported.ask(caption="a red dog", prompt=list(PROMPTS)).texts == texts
