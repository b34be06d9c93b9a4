"""Pictures as tokens: pixels and tokens are those of the encoder's own processor; boxes, errors."""

import pytest
import torch
from kit import seeing
from mmgen_inputs.picture_tokens import patch_boxes
from mmgen_inputs.pictures import PictureTokens

from mmgen.examples import All, Example, ResolvedExample
from mmgen.testing import EmbedderSuite

pytestmark = pytest.mark.slow


class TestPictureTokens(EmbedderSuite):
    def config(self):
        return PictureTokens(longest_edge=64)

    def backbone_config(self):
        return seeing.config()

    def pictures(self):
        return seeing.pictures()

    def examples(self):
        return [Example("a", {"image": ("wide",)}), Example("b", {"image": (All(("small", "tall")),)})]


def embedder(**settings):
    return seeing.model(**settings).embedders["image"]


@pytest.mark.parametrize("settings", [{}, {"longest_edge": 160}, {"split": False}], ids=str)
@pytest.mark.parametrize("name", seeing.FORMATS)
def test_pixels_and_tokens_are_those_of_the_processor(settings, name, tmp_path):
    model = seeing.model(**settings)
    _, processor = seeing.source(seeing.saved(model.backbone, tmp_path))
    split = {"do_image_splitting": settings["split"]} if "split" in settings else {}
    size = {"longest_edge": settings.get("longest_edge", 64)}
    done = processor(
        images=[[seeing.picture(name).load()]],
        text="<image>",
        add_special_tokens=False,
        size=size,
        return_tensors="pt",
        **split,
    )
    image = model.embedders["image"]
    collated = image.reader.collate([image.reader.read(ResolvedExample("e", {"image": name}))])
    assert collated["ids"].tolist() == done["input_ids"].tolist()
    pixels = (collated["pixels"] - image.mean) / image.deviation
    torch.testing.assert_close(pixels, done["pixel_values"][0], atol=1e-6, rtol=0)
    places = collated["tile_slots"][0][collated["ids"][0] == model.backbone.image_id]
    assert places.tolist() == list(range(len(pixels) * model.backbone.tokens_per_tile))


def test_boxes_of_tokens():
    image = embedder(longest_edge=32, split=False)
    described = image.describe(ResolvedExample("e", {"image": "small"}))
    tokens = image.reader.tokens
    around = "<fake_token_around_image>"
    assert described["names"] == [around, "<global-img>", *["<image>"] * tokens, around]
    assert described["boxes"][0] == (0, 0, 1, 1) and described["boxes"][2] == (0, 0, 0.5, 0.5)
    picture = embedder().reader.tiled("wide", "e")
    assert (picture.rows, picture.columns) == (1, 2)
    boxes = patch_boxes(picture, 4)
    assert boxes[:2] == [(0, 0, 0.25, 0.5), (0.25, 0, 0.5, 0.5)] and boxes[4] == (0.5, 0, 0.75, 0.5)
    assert boxes[8:] == [(0, 0, 0.5, 0.5), (0.5, 0, 1, 0.5), (0, 0.5, 0.5, 1), (0.5, 0.5, 1, 1)]


def test_a_caption_that_names_picture_tokens_is_a_text():
    """Read before and after a picture, whose own tokens are special."""
    model = seeing.model()
    image, backbone = model.embedders["image"], model.backbone
    before = backbone.encode_text("a <image> <fake_token_around_image> dog")
    (example,) = seeing.examples()[:1]
    assert (image.reader.read(example)[0] == backbone.image_id).any()
    assert before == backbone.encode_text("a <image> <fake_token_around_image> dog")
    assert backbone.image_id not in before and backbone.image_id in backbone.forbidden_ids
