"""The attention function: what it sees is mmgen's rule alone, and nothing is global."""

import pytest
import torch
from kit import families


@pytest.mark.parametrize("training", [False, True])
def test_dropout_is_the_layers(training):
    class Dropping(families.Tiny):
        """With much dropout."""

        dropout: float | None = 0.5

    backbone = Dropping(family="distilbert").build(texts=families.TEXTS).train(training)
    before, _, _ = families.ragged(backbone)
    for output in ((), ("attentions",)):
        first, second = (backbone.encode(before, output=output).last for _ in range(2))
        assert torch.equal(first, second) != training


@torch.no_grad()
def test_weights_on_demand_keep_the_mask_of_a_padded_row():
    """transformers' eager attention would add True and False to the scores."""
    backbone = families.build("eurobert")
    ids = families.random_ids(backbone, 1, 9)
    before = families.inputs(backbone, [ids[0, :5].tolist(), ids[0].tolist()])  # the first is padded to the second
    weighed = backbone.encode(before, output=("attentions",))
    alone = families.source_logits(backbone, ids[:, :5])
    torch.testing.assert_close(backbone.logits(weighed.last)[:1, :5], alone, atol=1e-5, rtol=0)
