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
def test_words_get_the_whole_picture_or_the_region_that_they_mention():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",))})
    plain = examples()[0]
    with_mentions = replace(plain, inputs=plain.inputs | {"caption_mentions": All(((2, 9, (1,)),))})
    embedder = model.embedders["image"]
    features = torch.from_numpy(plain.inputs["image"].features).unsqueeze(0)
    boxes = torch.from_numpy(plain.inputs["image"].boxes).unsqueeze(0)
    picture_looks = embedder.looks(features.mean(1, keepdim=True), torch.tensor([[[0.0, 0, 1, 1]]]))
    picture_term = embedder.word_norm(picture_looks)[0, 0]
    region_term = embedder.word_norm(embedder.looks(features, boxes))[0, 1]
    ids = [model.backbone.start_id, *model.backbone.encode_text("a red cat"), model.backbone.end_id]
    words = model.backbone.embed(torch.tensor(ids))
    slots = slots_of(model, [plain])
    assert torch.allclose(slots.states[0, : len(ids)], words + picture_term, atol=1e-6)
    slots = slots_of(model, [with_mentions])
    terms = slots.states[0, : len(ids)] - words
    spans = model.embedders["caption"].describe(plain)["spans"]
    for place in range(len(ids)):
        inside = 0 < place <= len(spans) and spans[place - 1][0] < 9 and spans[place - 1][1] > 2
        assert torch.allclose(terms[place], region_term if inside else picture_term, atol=1e-6), place


@torch.no_grad()
def test_scales_of_visual_embeddings():
    """The model starts as BERT, or with visual embeddings of the given sizes."""
    for scales in ({}, {"region_scale": 0.1, "word_scale": 0.3}):
        model = build_model(perturbed=False, inputs={"caption": Text(), "image": regions(**scales)})
        embedder = model.embedders["image"]
        assert torch.equal(
            embedder.region_norm.weight, torch.full_like(embedder.region_norm.weight, scales.get("region_scale", 0))
        )
        assert torch.equal(
            embedder.word_norm.weight, torch.full_like(embedder.word_norm.weight, scales.get("word_scale", 0))
        )


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


@torch.no_grad()
def test_a_word_that_mentions_several_regions_gets_their_mean():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",), max_regions=3)})
    example = replace(examples()[0], inputs=examples()[0].inputs | {"image": record("p0", 4)})
    with_mentions = replace(example, inputs=example.inputs | {"caption_mentions": All(((2, 5, (0, 2)), (0, 1, (3,))))})
    embedder, picture = model.embedders["image"], example.inputs["image"]
    looks = embedder.looks(
        torch.from_numpy(picture.features).unsqueeze(0), torch.from_numpy(picture.boxes).unsqueeze(0)
    )
    terms = embedder.word_norm(looks)[0]
    plain, with_mentions = (slots_of(model, [item]).states[0] for item in (example, with_mentions))
    spans = model.embedders["caption"].describe(example)["spans"]
    words = [1 + n for n, (start, stop) in enumerate(spans) if start < 5 and stop > 2]
    embedded = model.backbone.embed(torch.tensor(model.backbone.encode_text("a red cat")))
    for place in words:
        assert torch.allclose(with_mentions[place], embedded[place - 1] + (terms[0] + terms[2]) / 2, atol=1e-6)
    rest = [place for place in range(len(plain)) if place not in words]
    assert torch.allclose(with_mentions[rest], plain[rest], atol=1e-6)  # the model does not see the fourth region


@torch.no_grad()
def test_another_input_of_regions_replaces_an_absent_one():
    inputs = {"caption": Text(), "image": regions(dropout=0.0), "places": regions(dropout=0.0, fields=("image",))}
    model, alone = build_model(inputs=inputs), build_model()
    alone.load_state_dict({name: tensor for name, tensor in model.state_dict().items() if ".places." not in name})
    both, single_prefix = (
        composed_model.prefix(Collator(composed_model, ["caption", "image"], ())(examples()))
        for composed_model in (model, alone)
    )
    assert torch.equal(both.slots.states, single_prefix.slots.states) and torch.equal(both.term, single_prefix.term)
    without = model.prefix(Collator(model, ["caption"], ())(examples()))  # both are absent and have a trained embedding
    terms = [model.embedders[name].word_norm(model.embedders[name].without_picture) for name in ("image", "places")]
    assert torch.allclose(without.term[0], sum(terms), atol=1e-6)


@pytest.mark.parametrize("whole_image", ["mean", "first"])
def test_the_description_of_two_pictures_has_a_line_per_slot(whole_image):
    model = build_model(whole_image=whole_image)
    first = replace(record("a", 2), region_names=("cat", "dog"), scores=np.array([0.5, 0.25], np.float32))
    pair = Example("e", {"caption": "a cat", "image": All((first, record("b", 1)))})
    described, whole_label = model.embedders["image"].describe(pair), ["the whole picture"] * (whole_image == "mean")
    assert described["names"] == [*whole_label, "cat", "dog", *whole_label, "region 1", "the end"]
    assert described["pictures"] == [0] * (len(whole_label) + 2) + [1] * (len(whole_label) + 2)
    slots = slots_of(model, [pair])
    assert int(slots.of("image").sum()) == len(described["names"]) == len(described["boxes"])
    assert sum(map(model.embedders["image"].reader.slots, pair.shown("image"))) + 1 == len(described["names"])
    assert not described["scores"]  # the second picture has none
    expected = (
        [False] * (len(whole_label) or 1) + [True] * (1 + bool(whole_label)),
        [False] * (len(whole_label) or 1) + [True] * bool(whole_label),
    )
    assert described["regions"] == [*expected[0], *expected[1], False]


@torch.no_grad()
def test_mentions_are_of_the_first_picture():
    model = build_model(inputs={"caption": Text(), "image": regions(dropout=0.0, mentions=("caption",), max_regions=2)})
    pair = Example("e", {"caption": "a cat", "image": All((record("a", 3), record("b", 2)))})
    with_mentions = replace(
        pair, inputs=pair.inputs | {"caption_mentions": All(((0, 5, (2,)),))}
    )  # of an unread region
    assert torch.equal(slots_of(model, [pair]).states, slots_of(model, [with_mentions]).states)


def test_corners_as_in_the_paper():
    embedder = build_model(geometry="corners").embedders["image"]
    box = torch.tensor([[[0.1, 0.2, 0.3, 0.6]]])
    lengths = 1000 ** (torch.arange(256) / 256)
    expected = torch.cat([torch.cat([(100 * x / lengths).sin(), (100 * x / lengths).cos()]) for x in box[0, 0]])
    assert torch.allclose(embedder.where(box)[0, 0], expected, atol=1e-5)
