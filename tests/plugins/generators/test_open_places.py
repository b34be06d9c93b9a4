"""Which predictions a pass keeps."""

import pytest
import torch
from mmgen_generators import AnyOrderDecoding
from mmgen_generators.open_places import predict, share_of

LOGITS = torch.tensor([[4.0, 1, 0, 0], [2.0, 1.9, 0, 0], [3.0, 0, 2.8, 0]])
NONE_REFUSED = torch.zeros_like(LOGITS, dtype=torch.bool)
PLACES = torch.arange(3)
SEEDS = torch.arange(3)


def ranks(order) -> list[int]:
    options = AnyOrderDecoding(order=order)
    return predict(LOGITS, NONE_REFUSED, PLACES, SEEDS, options).surety.argsort(descending=True).tolist()


def test_orders_rank_the_places():
    assert ranks("left_to_right") == [0, 1, 2]
    shares = LOGITS.softmax(-1)
    assert ranks("confidence") == shares.max(-1).values.argsort(descending=True).tolist()
    top = shares.topk(2, -1).values
    assert ranks("margin") == (top[:, 0] - top[:, 1]).argsort(descending=True).tolist()
    assert ranks("entropy") == (-(shares * shares.log()).sum(-1)).argsort().tolist()


def test_refused_tokens_are_not_predicted_and_log_probabilities_are_of_the_whole_distribution():
    refused = NONE_REFUSED.clone()
    refused[:, 0] = True
    result = predict(LOGITS, refused, PLACES, SEEDS, AnyOrderDecoding())
    assert result.tokens.tolist() == [1, 1, 2]
    assert torch.allclose(result.log_prob, LOGITS.log_softmax(-1)[PLACES, result.tokens])


@pytest.mark.parametrize("places", range(1, 8))
@pytest.mark.parametrize("steps", [1, 2, 3, 5, None])
def test_all_places_are_written_in_the_given_number_of_passes(places, steps):
    options = AnyOrderDecoding(steps=steps)
    total = torch.tensor([[places]])
    written = [int(share_of(total, number, options)) for number in range(places + 1)]
    passes = min(places, steps or places)
    assert written[0] == 0 and written[passes] == places and written[passes - 1] < places
    shares = [after - before for before, after in zip(written, written[1:], strict=False)][:passes]
    assert max(shares) - min(shares) <= 1
