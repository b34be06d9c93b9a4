"""Regions of VL-BERT: the visual feature of every word, mentions, and the geometry of boxes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.vlbert import D, build_model, examples, record, regions, slots_of
from mmgen_inputs import Text
from mmgen_vlbert import VlBert, VlBertRegions

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.examples import All, Example


class TestRegions(mmgen.testing.EmbedderSuite):
    def backbone_config(self):
        return VlBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90)

    def config(self):
        store = {"width": D, "fingerprint": {"extractor": "toy"}, "classes": ("cat", "dog")}
        return VlBertRegions(fields=("image",), mentions=("caption",), dropout=0.0, **store)

    def examples(self):
        mentions = All(((2, 9, (0, 1)),))
        return [
            Example(f"e{n}", {"caption": "a red cat", "image": record("p", 2 + n), "caption_mentions": mentions})
            for n in range(2)
        ]


@torch.no_grad()
def test_words_get_the_whole_picture_or_the_mean_of_the_regions_that_they_mention():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",), max_regions=3)})
    picture, embedder = record("p0", 4), model.embedders["image"]
    plain = Example("e", {"caption": "a red cat", "image": picture})
    mentions = All(((2, 5, (0, 2)), (6, 9, (1,)), (0, 1, (3,))))  # the model does not see the fourth region
    features, boxes = (torch.from_numpy(array[:3])[None] for array in (picture.features, picture.boxes))
    whole = embedder.looks(features.mean(1, keepdim=True), torch.tensor([[[0.0, 0, 1, 1]]]))
    whole, seen = embedder.word_norm(whole)[0, 0], embedder.word_norm(embedder.looks(features, boxes))[0]
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat"), model.backbone.end_id]
    starts = [0, *(start for start, _ in model.embedders["caption"].describe(plain)["spans"]), 0]
    for inputs in ({}, {"caption_mentions": mentions}):
        slots = slots_of(model, [replace(plain, inputs=plain.inputs | inputs)])
        terms = slots.states[0, : len(ids)] - model.backbone.embed(torch.tensor(ids))
        for start, term in zip(starts, terms, strict=True):
            mentioned = (seen[0] + seen[2]) / 2 if 2 <= start < 5 else seen[1] if start > 5 else whole
            assert torch.allclose(term, mentioned if inputs else whole, atol=1e-6), start


@torch.no_grad()
def test_scales_of_visual_embeddings():
    """The model starts as BERT, or with visual embeddings of the given sizes."""
    for region, word in ((0.0, 0.0), (0.1, 0.3)):
        image = regions(region_scale=region, word_scale=word) if word else regions()
        embedder = build_model(perturb=False, inputs={"caption": Text(), "image": image}).embedders["image"]
        scales = torch.stack([embedder.region_norm.weight, embedder.word_norm.weight])
        assert torch.equal(scales, torch.tensor([[region], [word]]).expand_as(scales))


@torch.no_grad()
def test_rows_without_a_picture_have_a_trained_visual_embedding():
    model = build_model()
    text = replace(examples()[0], inputs={"caption": "a red cat"})
    batch = Collator(model, ["caption"], ())([text])
    term = model.embedders["image"].word_norm(model.embedders["image"].without_picture)
    prefix = model.prefix(batch)
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat")]
    assert torch.allclose(prefix.slots.states[0], model.backbone.embed(torch.tensor(ids)) + term, atol=1e-6)
    assert torch.allclose(prefix.term, term.unsqueeze(0))


@pytest.mark.parametrize("whole_image", ["mean", "first"])
def test_the_description_of_two_pictures_has_a_line_per_slot(whole_image):
    model = build_model(whole_image=whole_image)
    first = replace(record("a", 2), region_names=("cat", "dog"), scores=np.array([0.5, 0.25], np.float32))
    pair = Example("e", {"caption": "a cat", "image": All((first, record("b", 1)))})
    described, whole_label = model.embedders["image"].describe(pair), ["the whole picture"] * (whole_image == "mean")
    assert described["names"] == [*whole_label, "cat", "dog", *whole_label, "region 1", "the end"]
    assert described["pictures"] == [0] * (len(whole_label) + 2) + [1] * (len(whole_label) + 2)
    assert int(slots_of(model, [pair]).of("image").sum()) == len(described["names"]) == len(described["boxes"])
    assert not described["scores"]  # the second picture has none
    mean = whole_image == "mean"
    assert described["regions"] == [False, True, *[True] * mean, False, *[True] * mean, False]


def test_corners_as_in_the_paper():
    embedder = build_model(geometry="corners").embedders["image"]
    box = torch.tensor([[[0.1, 0.2, 0.3, 0.6]]])
    lengths = 1000 ** (torch.arange(256) / 256)
    expected = torch.cat([torch.cat([(100 * x / lengths).sin(), (100 * x / lengths).cos()]) for x in box[0, 0]])
    assert torch.allclose(embedder.where(box)[0, 0], expected, atol=1e-5)
