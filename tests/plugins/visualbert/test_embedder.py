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
        mentions = [All(((2, 9, (0, n)),)) for n in range(2)]
        return [
            Example(f"e{n}", {"caption": "a red cat", "image": record("p", 2 + n), "caption_mentions": mentions[n]})
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


@pytest.mark.parametrize("visual_type", [0, 1])
def test_two_pictures_have_a_type_each_and_one_has_its_own_in_any_batch(visual_type):
    model = build_model(inputs={"caption": Text()}, visual_type=visual_type)
    single = Example("single", {"caption": "a cat", "image": record("a", 2)})
    pair = Example("pair", {"caption": "a cat", "image": All((record("a", 2), record("b", 1)))})
    slots = model.prefix(Collator(model, model.inputs, ())([pair, single])).slots
    types = [row[shown].tolist() for row, shown in zip(slots.types, slots.of("image"), strict=True)]
    assert types == [[2, 2, 3], [2 + visual_type] * 2]
    assert (slots.positions[slots.of("image")] == -1).all()


def test_six_coordinates():
    boxes = torch.tensor([[[0.0, 0.25, 0.5, 1.0]]])
    for scale in (1, 8):
        settings = {"coordinates": True, "coordinate_scale": scale}
        embedder = build_model(inputs={"caption": Text()}, **settings).embedders["image"]
        assert embedder.projection.in_features == D + 6
        assert embedder.where(boxes).tolist() == [[[scale * x for x in (0.0, 0.25, 0.5, 1.0, 0.5, 0.75)]]]
