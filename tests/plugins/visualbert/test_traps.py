"""Traps in transformers' VisualBERT classes (docs/papers/visualbert.md lists them).

A failing test means that a newer transformers has fixed a trap; then update the page.
"""

import inspect

import pytest
import torch
from transformers import (
    VisualBertConfig,
    VisualBertForPreTraining,
    VisualBertForQuestionAnswering,
    VisualBertModel,
)

SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
D, TEXT, REGIONS = 6, 7, 3


def config(**more):
    plain = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "initializer_range": 0.3}
    return VisualBertConfig(vocab_size=50, visual_embedding_dim=D, **SIZES, **plain, **more)


def model_inputs(**more):
    generator = torch.Generator().manual_seed(0)
    return {
        "input_ids": torch.randint(5, 50, (1, TEXT), generator=generator),
        "attention_mask": torch.ones(1, TEXT, dtype=torch.long),
        "visual_embeds": torch.randn(1, REGIONS, D, generator=generator),
        "visual_attention_mask": torch.ones(1, REGIONS, dtype=torch.long),
    } | more


@pytest.fixture(scope="module")
def model():
    torch.manual_seed(0)
    return VisualBertModel(config()).eval()


@torch.no_grad()
def test_regions_without_types_get_the_second_type(model):
    """The original code, and therefore the published weights, use the first type."""
    ones, zeros = (torch.full((1, REGIONS), n) for n in (1, 0))
    default = model(**model_inputs()).last_hidden_state
    assert torch.equal(default, model(**model_inputs(visual_token_type_ids=ones)).last_hidden_state)
    assert not torch.allclose(default, model(**model_inputs(visual_token_type_ids=zeros)).last_hidden_state, atol=1e-2)


@torch.no_grad()
def test_answers_are_read_two_slots_before_the_end_of_the_text():
    """If the text does not end with "? [MASK] [SEP]", the answer is read from another word."""
    torch.manual_seed(0)
    model = VisualBertForQuestionAnswering(config(num_labels=4)).eval()
    states = model.visual_bert(**model_inputs()).last_hidden_state
    count = TEXT + REGIONS  # the masks of text and regions are joined before counting
    read = [
        place
        for place in range(count)
        if torch.allclose(model.cls(states[:, place]), model(**model_inputs()).logits, atol=1e-6)
    ]
    assert read == [TEXT - 2]


def test_special_visual_initialize_has_no_effect():
    torch.manual_seed(0)
    table = VisualBertModel(config(special_visual_initialize=True)).embeddings
    assert not torch.equal(table.visual_token_type_embeddings.weight, table.token_type_embeddings.weight)


@torch.no_grad()
def test_late_fusion_fails():
    with pytest.raises(IndexError):
        VisualBertModel(config(bypass_transformer=True)).eval()(**model_inputs())


def test_padding_is_token_1():
    """BERT's is 0."""
    assert VisualBertConfig().pad_token_id == 1


def test_the_documentation_of_matching_is_inverted():
    """The published head was trained with 1 for a matching caption."""
    documentation = " ".join((inspect.getdoc(VisualBertForPreTraining.forward) or "").split())
    assert "0 indicates sequence B is a matching pair of sequence A for the given image" in documentation


@torch.no_grad()
def test_a_boolean_mask_of_four_dimensions_has_no_effect(model):
    """Additive masks work; True and False are added to the scores as 1 and 0."""
    seen = torch.ones(1, 1, TEXT + REGIONS, TEXT + REGIONS, dtype=torch.bool)
    seen[..., 2] = False  # no slot attends to the third word
    changed_ids = model_inputs()["input_ids"].clone()
    changed_ids[0, 2] = 49 if changed_ids[0, 2] != 49 else 48

    def third_word_matters(mask):
        parts = {"attention_mask": mask[..., :TEXT], "visual_attention_mask": mask[..., TEXT:]}
        states = [
            model(**model_inputs(input_ids=ids, **parts)).last_hidden_state
            for ids in (model_inputs()["input_ids"], changed_ids)
        ]
        return not torch.allclose(states[0][:, :2], states[1][:, :2], atol=1e-4)

    assert third_word_matters(seen)
    assert not third_word_matters(torch.zeros(seen.shape).masked_fill(~seen, torch.finfo(torch.float32).min))
