"""Extra rows in an encoder's tables of positions and token types."""

import torch
from kit.refusals import refusal
from mmgen_encoders import Bert, Encoder
from mmgen_encoders.extra_rows import extend
from transformers import BertConfig, BertForMaskedLM, DistilBertConfig, DistilBertForMaskedLM

SIZES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "vocab_size": 9}


def test_rows_are_added_at_the_end():
    model = BertForMaskedLM(BertConfig(**SIZES, max_position_embeddings=12, intermediate_size=8))
    tables = model.bert.embeddings
    before = tables.position_embeddings.weight.clone(), tables.token_type_embeddings.weight.clone()
    assert [table.num_embeddings for table in extend(model, Bert(extra_positions=3))] == [15, 2]
    assert tables.position_embeddings.weight[:12].equal(before[0])
    assert tables.token_type_embeddings.weight.equal(before[1])
    new = tables.position_embeddings.weight[12:]
    assert new.requires_grad and 0 < new.std() < 0.05  # drawn like the others
    assert model.config.max_position_embeddings == 12  # the recipe has the extra rows
    torch.testing.assert_close(tables.position_embeddings(torch.tensor([14]))[0], new[2])


def test_tables_that_an_encoder_lacks_have_no_extra_rows():
    model = DistilBertForMaskedLM(DistilBertConfig(dim=16, n_layers=1, n_heads=2, hidden_dim=8, vocab_size=9))
    message = refusal(extend, model, Encoder(type="encoder", weights="distilbert", extra_token_types=1))
    assert message == "backbone.extra_token_types: the encoder 'encoder' has no token types; remove extra_token_types"
