"""Published weights of encoders: random weights under transformers' names give the same logits here."""

import pytest
import torch
from kit import toys
from kit.weights import perturbed
from mmgen_encoders import Bert, Roberta
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    RobertaConfig,
    RobertaModel,
)

from mmgen.attention import prefix_layout
from mmgen.errors import DataError
from mmgen.storage.published_weights import PublishedWeights
from mmgen.storage.weights import load_state, state
from mmgen.tensors import Slots

IDS = torch.tensor([[1, 5, 9, 3, 7, 2]])


def sizes(backbone) -> dict:
    words = len(backbone.tokenizer)
    return dict(vocab_size=words, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128)


def published(model) -> dict:
    """A model's tensors as in a file, with different values in every tensor."""
    return {name: tensor.clone() for name, tensor in perturbed(model).state_dict().items()}


def take(backbone, tensors: dict) -> PublishedWeights:
    weights = PublishedWeights("file", tensors)
    load_state(backbone, {**state(backbone), **backbone.published(weights)}, "file")
    return weights


def encoded(backbone) -> torch.Tensor:
    places = torch.arange(IDS.shape[1])[None]
    slots = Slots(backbone.embed(IDS), places, torch.zeros_like(IDS), prefix_layout(torch.ones_like(IDS) > 0))
    return backbone.encode(slots).last


@pytest.fixture
def bert():
    torch.manual_seed(0)
    backbone = toys.model(Bert).backbone
    backbone.add_pooler()
    return backbone


OLD_NAMES = ("LayerNorm.weight", "LayerNorm.gamma"), ("LayerNorm.bias", "LayerNorm.beta")


def old(name: str) -> str:
    for new, former in OLD_NAMES:
        name = name.replace(new, former)
    return name


@pytest.mark.parametrize("rename", [str, old, lambda name: f"model.{name}"], ids=["today", "gamma", "in front"])
def test_bert_for_pretraining_is_loaded_completely(bert, rename):
    with torch.no_grad():
        theirs = BertForPreTraining(BertConfig(**sizes(bert)))
        tensors = published(theirs)
        weights = take(bert, {rename(name): tensor for name, tensor in tensors.items()})
        assert weights.left_over == [rename(f"cls.seq_relationship.{kind}") for kind in ("weight", "bias")]
        out = theirs(IDS)
        torch.testing.assert_close(bert.logits(encoded(bert)), out.prediction_logits, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(bert.pooled(encoded(bert)), theirs.bert(IDS).pooler_output, atol=1e-5, rtol=1e-5)


def test_an_encoder_alone_leaves_the_head_unchanged(bert):
    with torch.no_grad():
        theirs = BertModel(BertConfig(**sizes(bert)), add_pooling_layer=False)
        tensors = published(theirs) | {"embeddings.position_ids": torch.arange(512)[None]}
        before = {name: tensor.clone() for name, tensor in state(bert).items() if ".cls." in name or "pooler" in name}
        assert take(bert, tensors).left_over == []
        torch.testing.assert_close(encoded(bert), theirs(IDS).last_hidden_state, atol=1e-5, rtol=1e-5)
    assert len(before) == 7 and all(torch.equal(state(bert)[name], tensor) for name, tensor in before.items())


def test_roberta_and_its_pooler():
    backbone = toys.model(Roberta).backbone
    backbone.add_pooler()
    config = RobertaConfig(
        **sizes(backbone),
        max_position_embeddings=backbone.model.config.max_position_embeddings,
        pad_token_id=backbone.pad_id,
    )
    with torch.no_grad():
        theirs = RobertaModel(config)
        tensors = published(theirs)
        assert take(backbone, {f"roberta.{name}": tensor for name, tensor in tensors.items()}).left_over == []
        out = theirs(IDS)
        torch.testing.assert_close(encoded(backbone), out.last_hidden_state, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(backbone.pooled(encoded(backbone)), out.pooler_output, atol=1e-5, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("family", toys.FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("front", ["", "model."])
def test_every_family_knows_its_own_names(family, front):
    backbone = toys.model(family).backbone
    tensors = {front + name: torch.randn(tensor.shape) for name, tensor in state(backbone.model).items()}
    weights = PublishedWeights("file", tensors)
    taken = backbone.published(weights)
    assert weights.left_over == []
    assert taken.keys() == state(backbone).keys() and all(taken[n] is tensors[f"{front}{n[6:]}"] for n in taken)


def test_an_untied_head_is_refused(bert):
    theirs = BertForMaskedLM(BertConfig(**sizes(bert), tie_word_embeddings=False))
    with pytest.raises(
        DataError, match="word_embeddings.weight' and 'cls.predictions.decoder.weight' of these weights differ"
    ):
        take(bert, published(theirs))
