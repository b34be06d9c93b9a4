"""Mirrored pictures: pixels, boxes, words, and the same draw however a batch is cut."""

import numpy as np
import pytest
from mmgen_extractors import Roi
from mmgen_inputs import Regions, Text
from mmgen_inputs.mirror import Mirrored, exchange_sides, mirror, mirrored_example
from mmgen_inputs.pictures import Pictures
from PIL import Image

from mmgen.configs import SequenceConfig
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.errors import DataError
from mmgen.examples import All, ResolvedExample
from mmgen.model import compose
from mmgen.parts import Picture
from mmgen.testing.tiny import Tiny

PIXELS = np.random.default_rng(0).integers(0, 255, (40, 60, 3), dtype=np.uint8)
PICTURE = Picture("p", lambda: Image.fromarray(PIXELS), [(0.0, 0.2, 0.25, 0.9), (0.5, 0.0, 1.0, 1.0)], ["a", "b"])


def test_pixels_and_boxes_are_mirrored():
    mirrored = mirror(PICTURE)
    assert np.array_equal(np.asarray(mirrored.load()), PIXELS[:, ::-1])
    assert mirrored.boxes == [(0.75, 0.2, 1.0, 0.9), (0.0, 0.0, 0.5, 1.0)] and mirrored.region_names == ["a", "b"]
    assert mirror(Picture("p", PICTURE.load)).boxes is None


@pytest.mark.parametrize(
    ("text", "exchanged"),
    [
        ("what is left of the dog?", "what is right of the dog?"),
        ("Left or RIGHT", "Right or LEFT"),
        ("the leftmost cat, rightwards", "the rightmost cat, leftwards"),
        ("a bright leftover", "a bright leftover"),
    ],
)
def test_left_and_right_are_exchanged(text, exchanged):
    assert exchange_sides(text) == exchanged and exchange_sides(exchanged) == text


def test_an_example_is_mirrored_for_its_input_alone():
    example = ResolvedExample("e", {"image": All(("p", "q")), "caption": "left", "other": "left"}, ("to the right?",))
    mirrored = mirrored_example(example, "image", "image", ("caption", "targets"))
    assert mirrored.inputs == {"image": All(("p", "q")), "caption": "right", "other": "left"}
    assert mirrored.targets == ("to the left?",)
    assert mirrored.seen_by("image").inputs["image"] == All((Mirrored("p"), Mirrored("q")))
    assert mirrored.seen_by("caption") is mirrored


def test_places_among_the_labels_are_refused():
    with pytest.raises(
        DataError, match="example 'e': the label 'box' is a place in the picture, which is not mirrored"
    ):
        mirrored_example(ResolvedExample("e", {"image": "p"}, labels={"box": [0, 0, 1, 1]}), "image", "image", ())


def test_half_of_the_visits_are_mirrored_in_training_only():
    image = Pictures(embedder=Regions(), extractor=Roi(model="test_resnet", image_size=64), mirror=True)
    inputs = {"image": image.model_copy(update={"mirror_texts": ("caption",)}), "caption": Text()}
    model = compose(Tiny(), inputs, None, sequence=SequenceConfig(), texts=["left right"])
    model.embedders["image"].prepare({"p": PICTURE})
    collator = Collator(model, ("image", "caption"), (), RngKey(0, "step"))
    examples = [ResolvedExample(str(number), {"image": "p", "caption": "left"}) for number in range(40)]
    left, right = (model.backbone.encode_text(word)[0] for word in ("left", "right"))
    visits = [collator.read(example, epoch) for epoch in (0, 1) for example in examples]
    words = [int(read.rows[0].items["caption"][0]) for read in visits]
    seen = [read.rows[0].items["image"][1][0] for read in visits]
    mirrored = [np.array_equal(picture.boxes[0], np.float32([0.75, 0.2, 1.0, 0.9])) for picture in seen]
    assert [word == right for word in words] == mirrored and {*words} == {left, right}
    assert 0.3 < np.mean(mirrored) < 0.7 and mirrored[:40] != mirrored[40:]
    assert [int(collator.read(example).rows[0].items["caption"][0]) for example in examples] == [left] * 40
    pixels = collator.batch(visits[:40]).inputs["image"]["pixels"]
    assert len(pixels) == 2 and (pixels[0] != pixels[1]).any()  # the picture and its mirror image, each once
