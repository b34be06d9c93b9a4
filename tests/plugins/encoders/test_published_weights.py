"""Published weights of encoders: random weights under transformers' names give the same logits here."""

import pytest
import torch
from kit import toys
from mmgen_encoders import Bert, Roberta
from mmgen_encoders.encoder import EncoderBackbone
from mmgen_encoders.published_weights import Renamed
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertModel,
    RobertaConfig,
    RobertaModel,
    VisualBertConfig,
    VisualBertForPreTraining,
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
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return {name: tensor.clone() for name, tensor in model.eval().state_dict().items()}


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


@pytest.mark.parametrize("family", toys.FAMILIES, ids=lambda family: family.__name__)
@pytest.mark.parametrize("front", ["", "model."])
def test_every_family_knows_its_own_names(family, front):
    backbone = toys.model(family).backbone
    tensors = {front + name: torch.randn(tensor.shape) for name, tensor in state(backbone.model).items()}
    weights = PublishedWeights("file", tensors)
    taken = backbone.published(weights)
    assert weights.left_over == []
    assert taken.keys() == state(backbone).keys() and all(taken[n] is tensors[f"{front}{n[6:]}"] for n in taken)


def test_rows_that_were_added_to_tables_stay(bert):
    longer = toys.model(Bert, extra_token_types=2, extra_positions=1).backbone
    tensors = published(VisualBertForPreTraining(VisualBertConfig(**sizes(bert), visual_embedding_dim=8)))
    name = "model.bert.embeddings.{}_embeddings.weight".format
    before = {table: state(longer)[name(table)].clone() for table in ("position", "token_type")}
    left = take(longer, tensors).left_over
    for table, added in (("position", 1), ("token_type", 2)):
        now, theirs = state(longer)[name(table)], tensors[f"visual_bert.embeddings.{table}_embeddings.weight"]
        assert torch.equal(now[:-added], theirs) and torch.equal(now[-added:], before[table][-added:])
    assert {name for name in left if "embeddings" in name} == {
        f"visual_bert.embeddings.{name}"
        for name in (
            "visual_token_type_embeddings.weight",
            "visual_position_embeddings.weight",
            "visual_projection.weight",
            "visual_projection.bias",
        )
    }


class OfVlBert(EncoderBackbone):
    """VL-BERT's names: the publisher's names of the tables differ, and there is one more table."""

    def published(self, weights):
        def as_bert(name: str) -> str:
            inner = name.removeprefix("vlbert.")
            if inner.startswith("mlm_head."):
                return f"cls.{inner.removeprefix('mlm_head.')}"
            embedded = inner.replace("embedding_LayerNorm", "LayerNorm")
            return f"bert.{'' if inner.startswith(('encoder.', 'pooler.')) else 'embeddings.'}{embedded}"

        return super().published(Renamed(weights, {as_bert(name): name for name in weights}))


def test_names_of_another_publisher_are_handed_on_by_those_of_transformers(bert):
    with torch.no_grad():
        theirs = BertForPreTraining(BertConfig(**sizes(bert)))
        tensors = {}
        for name, tensor in published(theirs).items():
            if "seq_relationship" in name:
                continue
            name = name.replace("bert.embeddings.LayerNorm", "vlbert.embedding_LayerNorm")
            name = name.replace("bert.embeddings.", "vlbert.").replace("cls.predictions", "vlbert.mlm_head.predictions")
            tensors[name if name.startswith("vlbert.") else f"vl{name}"] = tensor
        assert (
            "vlbert.encoder.layer.0.attention.self.query.weight" in tensors
            and "vlbert.word_embeddings.weight" in tensors
        )
        more = ["vlbert.object_linguistic_embeddings.weight", "vlbert.encoder.layer.2.output.dense.bias"]
        tensors |= {name: torch.ones(1, 32) for name in more}
        ours = OfVlBert(bert.config, bert.model, bert.tokenizer)
        ours.add_pooler()
        assert take(ours, tensors).left_over == more
        torch.testing.assert_close(ours.logits(encoded(ours)), theirs(IDS).prediction_logits, atol=1e-5, rtol=1e-5)


def test_an_untied_head_is_refused(bert):
    theirs = BertForMaskedLM(BertConfig(**sizes(bert), tie_word_embeddings=False))
    with pytest.raises(
        DataError, match="word_embeddings.weight' and 'cls.predictions.decoder.weight' of these weights differ"
    ):
        take(bert, published(theirs))
