"""Pictures as tokens: pixels and tokens are those of the encoder's own processor; boxes, errors."""

import pytest
import torch
from kit import seeing
from mmgen_inputs import Text
from mmgen_inputs.picture_tokens import patch_boxes
from mmgen_inputs.pictures import PictureTokens

from mmgen.errors import DataError
from mmgen.examples import All, Example, ResolvedExample
from mmgen.model import compose
from mmgen.parts import Picture
from mmgen.testing import TEXTS, EmbedderSuite
from mmgen.testing.tiny import Tiny


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


def test_a_picture_of_several_rows_is_computed_once():
    image = embedder()
    reads = [image.reader.read(ResolvedExample(str(n), {"image": name})) for n, name in enumerate(("small",) * 3)]
    collated = image.reader.collate(reads)
    assert len(collated["pixels"]) == len(reads[0][1][0].pixels)
    assert collated["tile_slots"][0].tolist() == collated["tile_slots"][2].tolist()


def test_boxes_of_tokens():
    image = embedder(longest_edge=32, split=False)
    described = image.describe(ResolvedExample("e", {"image": "small"}))
    tokens = image.reader.tokens
    assert described["names"] == [
        "<fake_token_around_image>",
        "<global-img>",
        *["<image>"] * tokens,
        "<fake_token_around_image>",
    ]
    assert described["boxes"][0] == (0, 0, 1, 1) and described["boxes"][2] == (0, 0, 0.5, 0.5)
    picture = embedder().reader.tiled("wide", "e")
    assert (picture.rows, picture.columns) == (1, 2)
    boxes = patch_boxes(picture, 4)
    assert boxes[:2] == [(0, 0, 0.25, 0.5), (0.25, 0, 0.5, 0.5)] and boxes[4] == (0.5, 0, 0.75, 0.5)
    assert boxes[8:] == [(0, 0, 0.5, 0.5), (0.5, 0, 1, 0.5), (0, 0.5, 0.5, 1), (0.5, 0.5, 1, 1)]


def test_what_cannot_be_read():
    image = embedder()
    with pytest.raises(DataError, match="example 'e' has no image; its inputs are: caption"):
        image.reader.read(ResolvedExample("e", {"caption": "a"}))
    with pytest.raises(DataError, match="image of 'e': no picture has the key 'other'; give a picture of the data"):
        image.reader.read(ResolvedExample("e", {"image": "other"}))

    def broken():
        raise OSError("truncated")

    with pytest.raises(DataError, match="image of 'e': truncated"):
        image.reader.read(ResolvedExample("e", {"image": Picture("p", broken)}))


def test_an_encoder_that_does_not_see():
    message = (
        "the input 'picture_tokens' needs an encoder that sees, but TinyBackbone sees no pictures; set backbone.type = "
        '"modernvbert", or use an input of features'
    )
    with pytest.raises(DataError) as error:
        compose(Tiny(), {"image": PictureTokens(), "caption": Text()}, None, texts=TEXTS)
    assert str(error.value) == message


def test_a_caption_that_names_picture_tokens_is_a_text():
    """Read before and after a picture, whose own tokens are special."""
    model = seeing.model()
    image, backbone = model.embedders["image"], model.backbone
    before = backbone.encode_text("a <image> <fake_token_around_image> dog")
    (example,) = seeing.examples()[:1]
    assert (image.reader.read(example)[0] == backbone.image_id).any()
    assert before == backbone.encode_text("a <image> <fake_token_around_image> dog")
    assert backbone.image_id not in before and backbone.image_id in backbone.forbidden_ids
