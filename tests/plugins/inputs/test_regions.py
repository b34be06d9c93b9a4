"""Regions: W and its reader, and the checks of a store against the training features."""

from types import SimpleNamespace

import pytest
import torch
from kit.stored import E, Words, embedder, example, fill, states
from mmgen_inputs import Regions
from mmgen_vision.box_words import SIDES


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "s.h5")


def test_no_more_than_max_regions(store):
    model = embedder(features=store, max_regions=4)
    assert states(model, "9", "2").mask.sum(1).tolist() == [4, 2]
    assert len(model.describe(example("9"))["boxes"]) == 4


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
