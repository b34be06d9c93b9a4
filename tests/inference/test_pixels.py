"""Queries with pictures for a model that reads pixels: an embedder whose config says `takes_picture`."""

import json

import numpy as np
import pytest
from kit import toys
from PIL import Image

from mmgen.errors import DataError
from mmgen.inference.load import load_run
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.tensors import All

PIXELS = '''
    from typing import ClassVar, Literal

    import mmgen


    class Pixels(mmgen.EmbedderConfig):
        """Pixels of pictures, 4 x 4 of them, through one linear layer."""

        type: Literal["pixels"] = "pixels"
        takes_picture: ClassVar[bool] = True

        def build(self, backbone):
            import numpy as np
            import torch

            from mmgen.parts import Embedder, Picture, Reader
            from mmgen.tensors import Segment

            class PixelReader(Reader):
                def read(_, example):
                    rows = []
                    for value in example.shown(self.fields[0]):
                        if isinstance(value, Picture):
                            rows.append(np.asarray(value.load().resize((4, 4)), np.float32).ravel() / 255)
                        else:  # a key of the training data
                            rows.append(np.full(48, len(value) / 9, np.float32))
                    return torch.from_numpy(np.stack(rows))

                def collate(_, items):
                    pad = torch.nn.utils.rnn.pad_sequence(items, True)
                    return {"pixels": pad, "count": torch.tensor([len(item) for item in items])}

            class PixelEmbedder(Embedder):
                def __init__(self):
                    super().__init__()
                    self.reader, self.dense = PixelReader(), torch.nn.Linear(48, backbone.input_size)

                def forward(self, pixels, count):
                    mask = torch.arange(pixels.shape[1])[None] < count[:, None]
                    return Segment(self.dense(pixels), mask)

            return PixelEmbedder()


    @mmgen.hookimpl
    def register_embedders():
        return [Pixels]
'''


@pytest.fixture
def trained(site, tmp_path, no_page):
    """A run whose only step reads pixels."""
    site("mmgen-pixels", "mmgen_pixels", PIXELS)
    steps = {"first": {"inputs": ["image"], "train": ["image", "backbone"]}}
    text = toys.recipe(output=str(tmp_path / "runs"), inputs={"image": {"type": "pixels"}}, steps=steps)
    (tmp_path / "toy.toml").write_text(text)
    return run(load(tmp_path / "toy.toml", installed())[0]).path


def test_generate_reads_a_picture_where_the_model_reads_pixels(trained, tmp_path):
    Image.fromarray(np.full((8, 6, 3), 200, np.uint8)).save(tmp_path / "photo.png")
    done = toys.mmgen_here(tmp_path, "generate", trained, "photo.png", "--out", "answers.jsonl")
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "answers.jsonl").read_text().splitlines()
    assert "error" not in json.loads(line)


def test_pictures_in_every_form_give_the_same_states(trained, tmp_path):
    predictor, image = load_run(trained), Image.fromarray(np.full((8, 6, 3), 200, np.uint8))
    image.save(tmp_path / "photo.png")
    predictor.warm()
    forms = [
        str(tmp_path / "photo.png"),
        tmp_path / "photo.png",
        image,
        np.asarray(image),
        (tmp_path / "photo.png").read_bytes(),
    ]
    answers = [predictor.ask(image=form).texts[0] for form in forms]
    assert len({(answer.text, answer.score) for answer in answers}) == 1
    key = predictor.ask(image="train-00000").texts[0]
    assert key.score != answers[0].score  # a key is read as in training
    assert predictor.ask(image=All((image, image))).texts[0].score != answers[0].score
    with pytest.raises(DataError, match=r"image: the array of a picture must be \(H, W, 3\) of uint8"):
        predictor.ask(image=np.zeros((2, 2)))


@pytest.mark.slow
def test_the_page_shows_pixels_without_regions(trained, tmp_path):
    assert toys.mmgen_here(tmp_path, "report", trained).returncode == 0
    assert (trained / "report.html").stat().st_size > 10_000
