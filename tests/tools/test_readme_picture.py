"""The script that draws the README's picture: a scene, and where the model looks while it writes two of the words."""

import pytest
import torch
from PIL import Image

from mmgen.attention_maps import DisplayUnits, WordAttention
from tools import readme_picture


@pytest.fixture
def attention():
    """Two words that look at one of two regions each; the last region is the whole picture."""
    boxes = ((0.0, 0.0, 0.4, 1.0), (0.6, 0.0, 1.0, 1.0), (0.0, 0.0, 1.0, 1.0))
    units = DisplayUnits(("left", "right", "all"), ((0,), (1,), (2,)), boxes)
    weights = torch.tensor([[0.9, 0.1, 0.0, 0.0, 0.0], [0.1, 0.9, 0.0, 0.0, 0.0]])
    return WordAttention(("what", " bus"), {"image": units}, {"all": weights})


def test_a_word_colours_the_region_that_it_looks_at(tmp_path, attention):
    out = tmp_path / "asks.png"
    readme_picture.draw_scene(Image.new("RGB", (40, 40), "white"), "what bus ?", attention, ["what", "bus"], out)
    picture = Image.open(out).convert("RGB")
    panel = picture.width / 3

    def blue(number, place):  # how blue a panel is, at a place of its width: a coloured region is less blue
        return picture.getpixel((int(panel * (number + place)), picture.height // 2))[2]

    left, right = 0.2, 0.8
    assert blue(0, left) == blue(0, right) == 255
    assert blue(1, left) < 200 < blue(1, right)
    assert blue(2, right) < 200 < blue(2, left)
