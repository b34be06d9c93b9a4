"""Which predictions a pass keeps."""

import pytest
import torch
from mmgen_generators import AnyOrderDecoding
from mmgen_generators.open_places import Predictions, masked_again, places_to_keep, predict, share_of

LOGITS = torch.tensor([[4.0, 1, 0, 0], [2.0, 1.9, 0, 0], [3.0, 0, 2.8, 0]])
NONE_REFUSED = torch.zeros_like(LOGITS, dtype=torch.bool)
PLACES = torch.arange(3)
SEEDS = torch.arange(20_000)


def predictions(**options) -> Predictions:
    return predict(LOGITS, NONE_REFUSED, PLACES, SEEDS[:3], AnyOrderDecoding(**options))


def ranks(**options) -> list[int]:
    return predictions(**options).surety.argsort(descending=True).tolist()


def test_orders_rank_the_places():
    assert ranks(order="left_to_right") == [0, 1, 2]
    shares = LOGITS.softmax(-1)
    assert ranks(order="confidence") == shares.max(-1).values.argsort(descending=True).tolist()
    top = shares.topk(2, -1).values
    assert ranks(order="margin") == (top[:, 0] - top[:, 1]).argsort(descending=True).tolist()
    assert ranks(order="entropy") == (-(shares * shares.log()).sum(-1)).argsort().tolist()


def test_refused_tokens_are_not_predicted_and_log_probabilities_are_of_the_whole_distribution():
    refused = NONE_REFUSED.clone()
    refused[:, 0] = True
    result = predict(LOGITS, refused, PLACES, SEEDS[:3], AnyOrderDecoding())
    assert result.tokens.tolist() == [1, 1, 2]
    assert torch.allclose(result.log_prob, LOGITS.log_softmax(-1)[PLACES, result.tokens])


def test_temperature_samples_the_softened_distribution():
    logits = LOGITS[1:2].expand(20_000, -1)
    tokens = predict(logits, logits < -1, SEEDS, SEEDS, AnyOrderDecoding(temperature=2.0)).tokens
    shares = tokens.bincount(minlength=4) / len(tokens)
    assert torch.allclose(shares, (LOGITS[1] / 2).softmax(-1), atol=0.015)


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


def keeps(surety, options, number=0):
    surety = torch.tensor([[surety]])
    open_places = surety >= 0
    table = Predictions(torch.zeros(surety.shape, dtype=torch.long), surety, surety)
    return places_to_keep(table, open_places, number, open_places.sum(-1), options)[0, 0].tolist()


def test_the_surest_are_kept_and_one_at_least():
    assert keeps([0.5, 0.9, 0.7, 0.8], AnyOrderDecoding(steps=2)) == [False, True, False, True]
    assert keeps([0.5, 0.9, 0.7, 0.8], AnyOrderDecoding(threshold=0.6)) == [False, True, True, True]
    assert keeps([0.5, 0.3, 0.2, 0.1], AnyOrderDecoding(threshold=0.6)) == [True, False, False, False]
    assert keeps([0.5, 1.0, 1.0], AnyOrderDecoding(threshold=1.0)) == [False, True, False]  # one token per pass
    assert keeps([0.5, -1.0, 0.2, -1.0], AnyOrderDecoding(steps=1)) == [True, False, True, False]


def test_mask_predict_masks_the_least_probable_again():
    """With 4 places in 4 steps: 3, 2, 1 and 0 of them (Ghazvininejad et al., 2019, section 3.3)."""
    log_prob, places = torch.tensor([[[-0.1, -3.0, -2.0, -1.0]]]), torch.ones(1, 1, 4, dtype=torch.bool)
    options = AnyOrderDecoding(steps=4, remask=True)
    again = [masked_again(log_prob, places, number, options)[0, 0].tolist() for number in range(4)]
    assert [sum(row) for row in again] == [3, 2, 1, 0]
    assert again[0] == [False, True, True, True] and again[2] == [False, True, False, False]
