"""Queries with pictures for a model that reads pixels: an embedder whose config `takes` pictures."""

import numpy as np
import pytest
from kit import toys
from kit.pixels import PIXELS
from PIL import Image

import mmgen
from mmgen.errors import DataError
from mmgen.examples import All
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run


@pytest.fixture
def trained(site, tmp_path, no_page):
    """A run whose only step reads pixels."""
    site("mmgen-pixels", "mmgen_pixels", PIXELS)
    steps = {"first": {"inputs": ["image"], "train": ["image", "backbone"]}}
    text = toys.recipe(output=str(tmp_path / "runs"), inputs={"image": {"type": "pixels"}}, steps=steps)
    (tmp_path / "toy.toml").write_text(text)
    return run(load(tmp_path / "toy.toml", installed())[0]).path


def test_pictures_in_every_form_give_the_same_states(trained, tmp_path):
    predictor, image = mmgen.load(trained), Image.fromarray(np.full((8, 6, 3), 200, np.uint8))
    image.save(tmp_path / "photo.png")
    predictor.warm()
    forms = [
        str(tmp_path / "photo.png"),
        tmp_path / "photo.png",
        image,
        np.asarray(image),
        (tmp_path / "photo.png").read_bytes(),
    ]
    answers = [predictor.ask({"image": form}).texts[0] for form in forms]
    assert len({(answer.text, answer.score) for answer in answers}) == 1
    key = predictor.ask({"image": "train-00000"}).texts[0]
    assert key.score != answers[0].score  # a key is read as in training
    assert predictor.ask({"image": All((image, image))}).texts[0].score != answers[0].score
    with pytest.raises(DataError, match=r"image: an array of pixels must be of uint8, not float64"):
        predictor.ask({"image": np.zeros((2, 2))})
    frames = [Image.new("RGB", (6, 8), (number, 200, 200)) for number in (200, 0, 90)]
    frames[0].save(tmp_path / "moving.gif", save_all=True, append_images=frames[1:])
    moving = predictor.ask({"image": tmp_path / "moving.gif"}).texts[0]
    assert moving.score == answers[0].score  # the first frame is read
