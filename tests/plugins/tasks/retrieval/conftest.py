"""A run that compares pixels with captions; each file of tests trains it once."""

import numpy as np
import pytest
from kit import toys
from kit.pixels import PIXELS
from PIL import Image

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    return tmp_path_factory.mktemp("retrieval")


@pytest.fixture
def trained(site, shared, no_page):
    """A run that compares pixels with captions, and a folder of three pictures."""
    site("mmgen-pixels", "mmgen_pixels", PIXELS)
    contrast = {"type": "contrastive", "projection_dim": 8}
    steps = {
        "contrast": {"inputs": ["image", "caption"], "train": ["image", "backbone"], "objectives": ["contrast"]},
        "words": {"inputs": ["caption"], "train": ["backbone"]},
    }
    text = toys.recipe(
        output=str(shared / "runs"),
        inputs={"image": {"type": "pixels"}, "caption": {"type": "text"}},
        objectives={"contrast": contrast},
        steps=steps,
        metrics={},
    )
    (shared / "toy.toml").write_text(text)
    for number in range(3):
        (shared / "photos").mkdir(exist_ok=True)
        Image.fromarray(np.full((8, 6, 3), 100 * number, np.uint8)).save(shared / f"photos/{number}.png")
    return run(load(shared / "toy.toml", installed())[0]).path
