"""Regions: W and its reader, and the checks of a store against the training features."""

from types import SimpleNamespace

import pytest
import torch
from kit.stored import E, Words, embedder, example, fill, states
from mmgen_extractors import Roi
from mmgen_inputs import Regions
from mmgen_vision.box_words import SIDES, box_in_words

from mmgen.errors import PluginError
from mmgen.features.store import FeatureStore


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "s.h5")


def test_no_more_than_max_regions(store):
    model = embedder(features=store, max_regions=4)
    assert states(model, "9", "2").mask.sum(1).tolist() == [4, 2]
    assert len(model.describe(example("9"))["boxes"]) == 4


def test_config_survives_json(store):
    config = Regions(features=store, extractor=Roi(seed=3), fields=("image",))
    dumped = config.model_dump(mode="json")
    assert dumped["extractor"]["seed"] == 3
    assert Regions.model_validate({**dumped, "extractor": Roi(**dumped["extractor"])}) == config


def test_a_larger_scale_of_boxes_keeps_the_middle(store):
    plain, larger = embedder(features=store), embedder(features=store, box_scale=8)
    boxes = torch.tensor([[[0.0, 0.25, 0.5, 1.0]]])
    assert plain.where(boxes) is boxes
    assert larger.where(boxes).tolist() == [[[-3.5, -1.5, 0.5, 4.5]]]


class BoxWords(Words):
    """A backbone whose tokenizer has a token for each side and each step."""

    tokenizer = SimpleNamespace(unk_token_id=0)

    def encode_text(self, text):
        return [1 + SIDES.index(text[:-1]), 10 + int(text[-1])] if text[:-1] in SIDES else super().encode_text(text)


def test_a_region_is_also_the_words_of_its_box(store):
    torch.manual_seed(0)
    model = Regions(fields=("image",), features=store, box_words=4).build(backbone := BoxWords())
    batch = model.reader.collate([model.reader.read(example("2"))])
    batch["boxes"] = torch.tensor([[[0.0, 0.25, 0.5, 1.0], [-0.3, 0.29, 0.58, 1.2]]])
    plain = model.projection(torch.cat([batch["features"], batch["boxes"]], -1))
    words = torch.tensor([[1, 10], [2, 12], [3, 15], [4, 19]])  # left0 top2 right5 bottom9
    expected = 4 * backbone.embed(words).mean(1).sum(0)
    assert torch.allclose(model(**batch).states - plain, expected.expand(1, 2, E), atol=1e-6)
    assert "box_ids" not in model.state_dict() and len(list(model.parameters())) == 2


class WholeWords(BoxWords):
    """A backbone whose tokenizer has a token for each word of a box."""

    def encode_text(self, text):
        return [10 + 10 * SIDES.index(text[:-1]) + int(text[-1])] if text[:-1] in SIDES else super().encode_text(text)


def test_the_words_of_a_box_are_like_its_region_before_any_training(store):
    """So that a prompt such as "left2 top4 right3 bottom6" points at it."""
    draw = torch.Generator().manual_seed(0)
    boxes, features = torch.rand(1, 30, 4, generator=draw), torch.randn(1, 30, 6, generator=draw)

    def share(**settings):
        torch.manual_seed(0)
        backbone = WholeWords()
        model = Regions(fields=("image",), features=store, **settings).build(backbone)
        states = model(features, torch.ones(1, 30, dtype=torch.bool), boxes).states[0]
        tokens = [[backbone.encode_text(word)[0] for word in box_in_words(box).split()] for box in boxes[0].tolist()]
        likeness = backbone.embed(torch.tensor(tokens)).sum(1) @ states.T
        return (likeness.argmax(1) == torch.arange(30)).float().mean().item()

    assert share(box_words=4) > 0.9
    assert share() < 0.2 and share(box_scale=8) < 0.2


def test_words_of_boxes_that_the_tokenizer_does_not_know(store):
    class Unknown(BoxWords):
        def encode_text(self, text):
            return [0]

    with pytest.raises(PluginError) as error:
        Regions(fields=("image",), features=store, box_words=4).build(Unknown())
    assert str(error.value) == (
        "box_words: the tokenizer knows no word of a box, such as 'left0'; train on prompts that name boxes, or leave "
        "box_words out"
    )


def test_words_of_boxes_need_boxes():
    with pytest.raises(ValueError, match="box_words: needs boxes = true"):
        Regions(box_words=4, boxes=False)


@pytest.mark.slow
def test_drawn_scenes_through_the_store(tmp_path):
    """From pixels to slots, as in a run."""
    from mmgen_scenes import Scenes

    from mmgen.features.extract import extract

    scenes = Scenes(train_size=6, val_size=1, test_size=1).build()
    summary = extract(Roi().build(), scenes.pictures(), tmp_path / "s.h5")
    assert (summary.written, summary.broken) == (8, ())
    examples = scenes.split("train")
    model = embedder(features=tmp_path / "s.h5")
    segment = model(**model.reader.collate([model.reader.read(item) for item in examples]))
    assert segment.mask.sum(1).tolist() == [len(item.facts["things"]) + 1 for item in examples]
    assert model.describe(examples[0])["names"][-1] == "the whole scene"
    assert FeatureStore(tmp_path / "s.h5").width == 576
