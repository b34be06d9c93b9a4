"""A run with prompts, from the recipe to the command line, Python and an export."""

import json
import shutil
from pathlib import Path

import pytest
from kit import archives, stored, toys
from kit.questions import caption_file

import mmgen
from mmgen.inference.load import load

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
    done = toys.mmgen_here(
        folder, *arguments, "--input", f"prompt={PROMPTS[0]}", "--input", f"prompt={PROMPTS[1]}", "--n", "3"
    )
    assert done.returncode == 0, done.stderr
    texts = done.stdout.splitlines()[1:]
    assert [line.rpartition("(")[2] for line in texts] == [f"{prompt})" for prompt in PROMPTS for _ in range(3)]
    texts = mmgen.load(folder / toys.PLACE).ask({"caption": "a red dog"}, n=3, options={"candidates": 20}).texts
    first = next(text.text for text in texts if text.text)
    done = toys.mmgen_here(folder, *arguments, "--n", "3", "--input", f"avoid={first}", "--out", "texts.jsonl")
    assert done.returncode == 0, done.stderr
    written = [text["text"] for text in json.loads((folder / "texts.jsonl").read_text())["texts"]]
    assert len({*written}) == 3 and first not in written


def test_python_and_an_export_write_what_the_run_writes(folder):
    run = mmgen.load(folder / toys.PLACE)
    texts = run.ask({"caption": "a red dog", "prompt": list(PROMPTS)}).texts
    assert [text.prompt for text in texts] == list(PROMPTS)
    exported = load(run.save(folder / "export"))
    assert exported.ask({"caption": "a red dog", "prompt": list(PROMPTS)}).texts == texts


QUESTIONS = (("how many dogs are there?", "2", "number", "how many"), ("is it red?", "yes", "yes/no", "is it"))


def vqa2(folder):
    """Files with VQA 2.0's names: two questions about each of six images to train on, and of three to score."""
    folder.mkdir(parents=True)
    for split, images in (("train", range(6)), ("val", range(6, 9))):
        questions, annotations = [], []
        for image in images:
            for place, (text, answer, answer_type, question_type) in enumerate(QUESTIONS):
                number = 10 * image + place
                questions.append({"image_id": image, "question": text, "question_id": number})
                kinds = {"multiple_choice_answer": answer, "answer_type": answer_type, "question_type": question_type}
                annotations.append({"question_id": number, "image_id": image, **kinds})
        (folder / f"v2_OpenEnded_mscoco_{split}2014_questions.json").write_text(json.dumps({"questions": questions}))
        (folder / f"v2_mscoco_{split}2014_annotations.json").write_text(json.dumps({"annotations": annotations}))
        caption_file(folder / f"captions_{split}2014.json", *((i, i, "a dog near a tree") for i in images))
    stored.fill(folder / "regions.h5", records=[stored.record(str(image), 3, seed=image) for image in range(9)])


@pytest.mark.exhaustive
def test_the_profile_on_vqas_types_of_questions(tmp_path):
    """As published, but for a small encoder, one epoch and files of six images."""
    vqa2(tmp_path / "data" / "vqa2")
    (tmp_path / "recipes").mkdir()
    shutil.copy(Path(__file__).parents[3] / "recipes" / "conditions.toml", tmp_path / "recipes")
    settings = [f"backbone.weights={archives.bert(tmp_path / 'bert')}", "training.epochs=1", "generator.max_tokens=8"]
    sets = [word for setting in settings for word in ("--set", setting)]
    done = toys.mmgen_here(tmp_path, "run", "recipes/conditions.toml", "--profile", "vqa2", *sets)
    assert done.returncode == 0, done.stderr
    run = tmp_path / "runs/conditions/vqa2/seed-0"
    lines = [json.loads(line) for line in (run / "steps/prompted/generations.jsonl").read_text().splitlines()]
    kinds = [f"question type: {kind}" for *_, kind in QUESTIONS]
    assert [text["prompt"] for (text,) in lines] == kinds * 3
    assert "obedience_type" in (run / "table.md").read_text()
