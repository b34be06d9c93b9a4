"""Steps that predict from pairs of pictures, or regions and boxes, asked about new pictures. Labels, choices and the
command `mmgen predict` are in tests/transcripts/predictions.txt."""

from pathlib import Path

import pytest
from kit.asked import recipe_text, registry
from PIL import Image

import mmgen
from mmgen.errors import RunError
from mmgen.examples import All
from mmgen.recipe.load import load
from mmgen.runs.run import run

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("no_page")]
BOXES = [[0.1, 0.1, 0.4, 0.5], [0.5, 0.5, 0.9, 1.0]]


def test_pairs_of_pictures_regions_and_phrases_are_predicted(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for module in ("load", "best_step"):
        monkeypatch.setattr(f"mmgen.inference.{module}.installed", registry)
    Path("toy.toml").write_text(recipe_text(blind=False))
    folder = run(load(Path("toy.toml"), registry())[0]).path
    for name, colour in (("ball.png", (200, 30, 30)), ("sky.jpg", (120, 180, 250))):
        Image.new("RGB", (64, 48), colour).save(name)

    def predict(step, **query):
        return mmgen.load(folder, step).predict(query)

    boxed = {"picture": "ball.png", "boxes": BOXES}
    pair = predict("pairs", picture=All(("ball.png", "sky.jpg")), statement="both are red")
    assert sum(pair.value["probabilities"].values()) == pytest.approx(1)
    assert set(pair.value["probabilities"]) == {"False", "True"}
    region = predict("expressions", image=boxed, expression="red ball")
    assert region.value["box"] == pytest.approx(BOXES[region.value["index"]])
    phrases = ("a red ball", [[9, 19, None]], "a blue ball", 7)
    caption = "there is a Red ball on the grass"
    by_words, by_place, lost, odd = mmgen.load(folder, "phrases").predict_all(
        [{"image": boxed, "caption": caption, "phrases": phrase} for phrase in phrases]
    )
    assert sorted(by_words.value) == [pytest.approx(box) for box in BOXES] and by_words.value == by_place.value
    assert lost.error == "example 'query 3': the caption does not contain 'a blue ball'"
    assert odd.error.startswith("example 'query 4': a phrase must be words of the caption, or [first")
    with pytest.raises(RunError, match="step 'pairs' does not write texts, but predicts label; use predict"):
        mmgen.load(folder, "pairs").ask({"picture": All(("ball.png", "sky.jpg")), "statement": "x"})
