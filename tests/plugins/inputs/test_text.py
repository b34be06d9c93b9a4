"""Text inputs: tokens, hidden words and appended masks."""

import random

import pytest
import torch
from kit import toys
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text
from pydantic import ValidationError

from mmgen.data.collate import Collator
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.tensors import Hiding


def test_a_mask_is_appended_and_never_hidden():
    backbone = toys.model().backbone
    reader = Text(fields=("q",), max_tokens=2, append_mask=True).build(backbone).reader
    item = reader.read(Example("x", {"q": "the red ball near the tree"}))
    assert len(item) == 3 and item[-1] == backbone.mask_id
    for whole_words in (False, True):
        hidden, labels = reader.hide(item, random.Random(0), Hiding(1.0, (1.0, 0.0), whole_words))
        assert labels.tolist() == [*item[:2].tolist(), -100] and hidden[-1] == backbone.mask_id
    assert reader.slots("what is it") == 2
    description = Text(fields=("q",), append_mask=True).build(backbone).describe(Example("x", {"q": "red ball"}))
    assert len(description["names"]) == len(description["spans"]) + 1


def test_a_separate_mask_follows_the_question_in_the_answer_s_segment():
    """[CLS] question [SEP] [MASK]: VL-BERT, for VQA."""
    answer = Text(fields=("question",), max_tokens=0, append_mask=True, token_type=1)
    model = compose(
        Bert(num_hidden_layers=1, hidden_size=16, num_attention_heads=2),
        {"question": Text(), "answer": answer},
        Masked(),
        texts=["what is it"] * 3,
    )
    example = Example("x", {"question": "what is it"})
    slots = model.prefix(Collator(model, model.inputs, ())([example])).slots
    ids = [model.backbone.start_id, *model.backbone.encode_text("what is it"), model.backbone.end_id]
    expected = model.backbone.embed(torch.tensor([[*ids, model.backbone.mask_id]]))
    assert torch.equal(slots.states, expected) and slots.types.tolist() == [[0] * len(ids) + [1]]
    assert model.embedders["answer"].describe(example)["names"] == ["[MASK]"]


def test_a_text_of_nothing_is_refused():
    with pytest.raises(
        ValidationError, match="max_tokens = 0 leaves an empty text; set max_tokens > 0, or append_mask"
    ):
        Text(max_tokens=0)
