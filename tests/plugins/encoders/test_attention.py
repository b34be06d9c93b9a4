"""The attention function: what it sees is mmgen's rule alone, and nothing is global."""

import threading

import pytest
import torch
from kit import families

from mmgen.testing.rows import pick


@torch.no_grad()
def test_the_model_itself_computes_what_transformers_does():
    """Its padding is not seen."""
    backbone = families.build("modernbert")
    ids = families.random_ids(backbone, 2, 30)
    padding = torch.ones_like(ids).index_fill(1, torch.arange(20, 30), 0)
    ours = backbone.model(input_ids=ids, attention_mask=padding).logits
    backbone.model.set_attn_implementation("sdpa")
    assert torch.equal(ours, backbone.model(input_ids=ids, attention_mask=padding).logits)


@pytest.mark.parametrize("family", families.QUICK)
@torch.no_grad()
def test_weights_on_demand_are_those_that_were_used(family):
    backbone = families.build(family)
    before, _, targets = families.ragged(backbone)
    row = before.followed_by(families.behind(backbone, before, targets))
    plain, weighed = backbone.encode(row), backbone.encode(row, output=("attentions",))
    torch.testing.assert_close(weighed.last, plain.last, atol=1e-5, rtol=0)
    assert plain.attentions == () and len(weighed.attentions) == 3
    for weights in weighed.attentions:
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3]))


@torch.no_grad()
def test_threads_share_an_encoder():
    """Each with a cache, a layout and requested weights of its own."""
    backbone = families.build("modernbert")
    before, _, targets = families.ragged(backbone)
    tail = families.behind(backbone, before, targets)

    def write(number: int) -> list[torch.Tensor]:
        rows = [number % 2] * (1 + number % 3)
        cache = backbone.new_cache()
        first = backbone.encode(pick(before, rows), cache, ("attentions",) if number % 2 else ())
        return [first.last, *first.attentions, backbone.encode(pick(tail, rows), cache).last]

    alone, together, barrier = [write(number) for number in range(4)], {}, threading.Barrier(4)

    def work(number: int) -> None:
        barrier.wait()
        together[number] = [write(number) for _ in range(5)]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, expected in enumerate(alone):
        for results in together[number]:
            torch.testing.assert_close(results, expected, atol=1e-6, rtol=0)


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
def test_ultrabert_loses_its_window_under_a_mask_of_four_dimensions():
    """transformers takes such a mask for both kinds of layers. mmgen hands it none."""
    backbone = families.build("ultrabert")
    ids = families.random_ids(backbone, 1, 30)
    right = families.source_logits(backbone, ids)
    everything = torch.ones(1, 1, 30, 30, dtype=torch.bool)
    wrong = backbone.model(input_ids=ids, attention_mask=everything).logits
    assert (wrong - right).abs().max() > 1e-2
    logits = backbone.logits(backbone.encode(families.inputs(backbone, ids.tolist())).last)
    torch.testing.assert_close(logits, right, atol=1e-5, rtol=0)


@torch.no_grad()
def test_eager_attention_adds_boolean_masks():
    """So mmgen's function never hands a mask to it, also where weights are requested."""
    backbone = families.build("eurobert")
    ids = families.random_ids(backbone, 1, 9)
    first_only = (torch.arange(9) < 5).expand(1, 1, 9, 9) | torch.eye(9, dtype=torch.bool)
    backbone.model.set_attn_implementation("eager")
    wrong = backbone.model(input_ids=ids, attention_mask=first_only).logits
    backbone.model.set_attn_implementation("sdpa")
    right = backbone.model(input_ids=ids, attention_mask=first_only).logits
    assert (wrong - right).abs().max() > 1e-2
    before = families.inputs(backbone, [ids[0, :5].tolist(), ids[0].tolist()])  # the first is padded to the second
    weighed = backbone.encode(before, output=("attentions",))
    torch.testing.assert_close(backbone.logits(weighed.last)[:1, :5], right[:, :5], atol=1e-5, rtol=0)
