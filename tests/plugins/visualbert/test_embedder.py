"""Regions of VisualBERT: positions, types and coordinates."""

from dataclasses import replace

import pytest
import torch
from kit.visualbert import D, build_model, examples, record
from mmgen_inputs import Text
from mmgen_visualbert import VisualBert, VisualBertRegions

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.examples import All, Example


class TestRegions(mmgen.testing.EmbedderSuite):
    def backbone_config(self):
        return VisualBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def config(self):
        return VisualBertRegions(width=D, fingerprint={"extractor": "toy"}, fields=("image",), mentions=("caption",))

    def examples(self):
        return [
            Example(
                f"e{n}",
                {"caption": "a red cat", "image": record("p", 2 + n), "caption_mentions": All(((2, 9, (0, n)),))},
            )
            for n in range(2)
        ]


@pytest.mark.parametrize("scale", [1.0, 4.0])
@torch.no_grad()
def test_regions_get_the_mean_position_of_the_words_that_mention_them(scale):
    settings = {"mentions": ("caption",), "first_object": 1, "mention_scale": scale}
    model = build_model(inputs={"caption": Text(max_tokens=4)}, **settings)
    plain_example = replace(examples()[1], inputs={"caption": "a red cat and two dogs", "image": record("p", 3)})
    mentions = All(((2, 9, (0,)), (0, 1, (0, 1)), (14, 22, (1,))))  # the last mention is truncated
    with_mentions = replace(plain_example, inputs=plain_example.inputs | {"caption_mentions": mentions})
    plain, aligned = (
        model.prefix(Collator(model, model.inputs, ())([example])).slots for example in (plain_example, with_mentions)
    )
    spans = model.embedders["caption"].describe(plain_example)["spans"][:4]
    added = aligned.states - plain.states
    table = model.backbone.positions.weight

    def of(*letters):
        tokens = [n for n, (start, stop) in enumerate(spans) for first, end in letters if start < end and stop > first]
        return scale * torch.stack([table[1 + token] for token in tokens]).mean(0)  # after [CLS]

    regions_of = added[0][aligned.of("image")[0]]
    assert torch.allclose(regions_of[1], of((2, 9), (0, 1)), atol=1e-5)
    assert torch.allclose(regions_of[2], of((0, 1)), atol=1e-5)
    assert not regions_of[0].any() and not added[0][~aligned.of("image")[0]].any()


def test_two_pictures_have_a_type_each():
    model = build_model(inputs={"caption": Text()})
    pair = replace(examples()[0], inputs={"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    slots = model.prefix(Collator(model, model.inputs, ())([pair])).slots
    image_slots = slots.of("image")[0]
    assert slots.types[0][image_slots].tolist() == [2, 2, 3] and slots.positions[0][image_slots].tolist() == [-1] * 3


def test_the_type_of_a_single_picture_does_not_depend_on_the_batch():
    model = build_model(inputs={"caption": Text()}, visual_type=1)
    pair = Example("pair", {"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    single = Example("single", {"caption": "a cat", "image": All((record("a", 2),))})
    slots = model.prefix(Collator(model, model.inputs, ())([pair, single])).slots
    types = [row[image_slots].tolist() for row, image_slots in zip(slots.types, slots.of("image"), strict=True)]
    assert types == [[2, 2, 3], [3, 3]]


@torch.no_grad()
def test_mentions_are_of_the_first_picture():
    model = build_model(inputs={"caption": Text()}, mentions=("caption",), max_regions=2)
    pair = Example("e", {"caption": "a cat", "image": All((record("a", 3), record("b", 2)))})
    with_mentions = replace(
        pair, inputs=pair.inputs | {"caption_mentions": All(((0, 5, (2,)),))}
    )  # of an unread region
    plain, with_mentions = (
        model.prefix(Collator(model, model.inputs, ())([example])).slots.states for example in (pair, with_mentions)
    )
    assert torch.equal(plain, with_mentions)


def test_six_coordinates():
    model = build_model(inputs={"caption": Text()}, coordinates=True)
    assert model.embedders["image"].projection.in_features == D + 6
    boxes = torch.tensor([[[0.1, 0.2, 0.5, 0.9]]])
    assert torch.allclose(model.embedders["image"].where(boxes), torch.tensor([[[0.1, 0.2, 0.5, 0.9, 0.4, 0.7]]]))


def test_larger_coordinates():
    boxes = torch.tensor([[[0.0, 0.25, 0.5, 1.0]]])
    plain = build_model(inputs={"caption": Text()}, coordinates=True).embedders["image"]
    larger = build_model(inputs={"caption": Text()}, coordinates=True, coordinate_scale=8).embedders["image"]
    assert plain.where(boxes).tolist() == [[[0.0, 0.25, 0.5, 1.0, 0.5, 0.75]]]
    assert larger.where(boxes).tolist() == [[[0.0, 2.0, 4.0, 8.0, 4.0, 6.0]]]
