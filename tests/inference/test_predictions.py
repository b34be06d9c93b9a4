"""`mmgen predict RUN` for steps that predict labels, choices, regions and boxes, about new pictures."""

import json
from pathlib import Path

import pytest
from kit.asked import recipe_text, registry
from kit.toys import mmgen_here
from PIL import Image

import mmgen
from mmgen.errors import RunError
from mmgen.examples import All
from mmgen.recipe.load import load
from mmgen.runs.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]

NO_LIST = '\'choices\' must be a list of strings, e.g. ["the first", "the second"]'
BOXES = [[0.1, 0.1, 0.4, 0.5], [0.5, 0.5, 0.9, 1.0]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a run of all five tasks, in `run`, and two pictures that are not in the training data."""
    folder = tmp_path_factory.mktemp("tasks")
    (folder / "toy.toml").write_text(recipe_text(blind=False))
    recipe = load(folder / "toy.toml", registry())[0].model_copy(update={"output": str(folder / "runs")})
    (folder / "run").symlink_to(run(recipe).path)
    for name, colour in (("ball.png", (200, 30, 30)), ("sky.jpg", (120, 180, 250))):
        Image.new("RGB", (64, 48), colour).save(folder / name)
    return folder


@pytest.fixture
def ask(finished, monkeypatch):
    """Answers to lines, or the terminal output for arguments."""
    for module in ("load", "best_step"):
        monkeypatch.setattr(f"mmgen.inference.{module}.installed", registry)

    def run_predict(*arguments, lines=()):
        if not lines:
            return mmgen_here(finished, "predict", "run", *arguments)
        (finished / "ask.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
        done = mmgen_here(finished, "predict", "run", "ask.jsonl", "--out", "answers.jsonl", *arguments)
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in (finished / "answers.jsonl").read_text().splitlines()]

    return run_predict


def input_options(*pairs):
    return [part for pair in pairs for part in ("--input", pair)]


def test_a_statement_is_judged_about_two_pictures(ask):
    done = ask(*input_options("image=ball.png", "image=sky.jpg", "statement=both are red"))
    assert {line.split()[1] for line in done.stdout.splitlines()[1:]} == {"False", "True"}
    pair, lost = ask(
        lines=[
            {"image": ["ball.png", "sky.jpg"], "statement": "both are red"},
            {"image": ["ball.png", "gone.jpg"], "statement": "both are red"},
        ]
    )
    assert sum(pair["value"]["probabilities"].values()) == pytest.approx(1)
    assert lost["error"].startswith("ask.jsonl:2: gone.jpg: no such file")


def test_a_choice_is_made_among_the_texts_of_a_query(ask):
    done = ask("ball.png", *input_options("question=why ?", "choices=it is red", "choices=it is big", "choices=no"))
    shown = sorted(line.split("%  ")[1] for line in done.stdout.splitlines()[1:])
    assert done.returncode == 0 and shown == ["it is big", "it is red", "no"]
    typed = ask("ball.png", *input_options("question=why ?", 'choices=["it is red", "it is big", "no"]'))
    assert (typed.returncode, typed.stdout) == (0, done.stdout), typed.stderr
    line = {"image": "ball.png", "question": "why ?"}
    advice = "'choices' is missing: step 'choices' reads image and question and choice; add --input choices=VALUE"
    two, none, odd = ask(
        "--step",
        "choices",
        lines=[
            {**line, "choices": ["it is red", "it is big"]},
            {**line},
            {**line, "choices": [1, 2]},
        ],
    )
    assert len(two["value"]["probabilities"]) == 2 and two["value"]["choice"] in (0, 1)
    assert none["error"].startswith(f"ask.jsonl:2: {advice}")
    assert odd["error"] == f"example 'ask.jsonl:3': {NO_LIST}"


def test_boxes_are_ranked_for_a_phrase_of_a_caption(ask):
    picture, caption = {"picture": "ball.png", "boxes": BOXES}, "there is a Red ball on the grass"
    by_phrase, by_place, lost, odd = ask(
        lines=[
            {"image": picture, "caption": caption, "phrases": "a red ball"},
            {"image": picture, "caption": caption, "phrases": [[9, 19, None]]},
            {"image": picture, "caption": caption, "phrases": "a blue ball"},
            {"image": picture, "caption": caption, "phrases": 7},
        ]
    )
    assert (
        sorted(by_phrase["value"]) == [pytest.approx(box) for box in BOXES] and by_phrase["value"] == by_place["value"]
    )
    assert lost["error"] == "example 'ask.jsonl:3': the caption does not contain 'a blue ball'"
    assert odd["error"].startswith("example 'ask.jsonl:4': a phrase must be words of the caption, or [first")
    done = ask("ball.png", *input_options("caption=a red ball", "phrases=red ball"))
    assert done.returncode == 0 and "%  [" in done.stdout.splitlines()[1]


@pytest.fixture
def inside(finished, monkeypatch):
    """In the folder of the run, with the parts of this file."""
    for module in ("load", "best_step"):
        monkeypatch.setattr(f"mmgen.inference.{module}.installed", registry)
    monkeypatch.chdir(finished)


def test_every_kind_is_predicted_in_python(inside):

    def predict(step, **query):
        return mmgen.load("run", step).predict(query)

    boxed = {"picture": "ball.png", "boxes": BOXES}
    label = predict("answers", picture=Path("ball.png").read_bytes(), question="what color is the ball ?")
    assert label.value["label"] in label.value["probabilities"] and 0 < label.score < 1
    pair = predict("pairs", picture=All(("ball.png", "sky.jpg")), statement="both are red")
    assert set(pair.value["probabilities"]) == {"False", "True"}
    choice = predict("choices", image="ball.png", question="why ?", choices=["it is red", "it is big"])
    assert choice.as_json()["choices"] == ["it is red", "it is big"]
    assert len(choice.value["probabilities"]) == 2 and choice.value["choice"] in (0, 1)
    region = predict("expressions", image=boxed, expression="red ball")
    assert region.value["box"] == pytest.approx(BOXES[region.value["index"]])
    phrases = mmgen.load("run", "phrases")
    one, other = phrases.predict_all(
        [{"image": boxed, "caption": "a ball", "phrases": phrase} for phrase in ("ball", "a sky")]
    )
    assert sorted(one.value) == [pytest.approx(box) for box in BOXES]
    assert other.error == "example 'query 2': the caption does not contain 'a sky'"
    with pytest.raises(RunError, match="step 'pairs' does not write texts, but predicts label; use predict"):
        mmgen.load("run", "pairs").ask({"picture": All(("ball.png", "sky.jpg")), "statement": "x"})


def test_a_predictor_warms_up(inside):
    run = mmgen.load("run", "answers")
    run.warm()
    assert set(run.features._extractors) == {"image"}
