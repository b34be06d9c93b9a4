"""Noise in targets."""

import pytest
import torch
from kit import toys
from kit.any_order import any_order

from mmgen.data.collate import Collator
from mmgen.examples import Example


@pytest.mark.parametrize("keys", [{}, {"length": "end"}, {"length": "end", "block": 4}], ids=str)
def test_a_masked_place_weighs_places_over_masked_places(keys):
    """Of a block, or of the whole text; other slots weigh nothing."""
    model = any_order(**keys)
    batch = Collator(model, ["caption"])([Example("e", {"caption": "red"}, (" ".join(toys.WORDS[:7]),))])
    weights, labels = batch.targets["generator"].labels["weights"][0], batch.tail.labels[0]
    assert ((weights > 0) == (labels != -100)).all()
    places, size = int(len(labels) if "block" not in keys else len(labels) - 4), keys.get("block", len(labels))
    noisy = slice(len(labels) - places, None)  # behind the clean blocks
    for block, targets in zip(weights[noisy].split(size), labels[noisy].split(size), strict=True):
        maskable = len(block) if "length" in keys else len(block) - 1  # a known length ends with the end token
        masked = int((targets != -100).sum())
        assert masked and torch.allclose(block[targets != -100], torch.tensor(maskable / masked))


def test_validation_repeats_its_noise_and_training_draws_anew():
    model = any_order()
    collate = Collator(model, ["caption"])
    examples = toys.examples()
    still, again, drawn, redrawn = (
        collate(examples, epochs).tail.ids for epochs in (None, None, [0] * len(examples), [1] * len(examples))
    )
    assert torch.equal(still, again) and not torch.equal(drawn, redrawn)


def test_shares_of_masked_places_spread_over_the_questions_of_an_example():
    """Five questions of eight words: the five numbers of masked words lie apart, and over many examples every number is
    equally frequent."""
    model = any_order()
    collate = Collator(model, ["caption"])
    question = " ".join(toys.WORDS[:8])
    counts = torch.zeros(9)
    for number in range(400):
        tail = collate([Example(str(number), {"caption": "red"}, (question,) * 5)]).tail
        masked = ((tail.labels != -100).view(5, 9)).sum(1).tolist()
        assert max(masked) - min(masked) >= 4 and len({*masked}) >= 4, masked
        counts += torch.bincount(torch.tensor(masked), minlength=9)
    assert counts[0] == 0 and (counts[1:] / 2000 - 1 / 8).abs().max() < 0.02


def test_counts_are_the_tokens_of_the_targets():
    for keys in ({}, {"length": "end"}, {"length": "end", "block": 4}, {"length": "end", "block": 1}):
        model = any_order(**keys)
        batch = Collator(model, ["caption"])([Example("e", {"caption": "red"}, ("what is red", "where"))])
        assert batch.counts == {"generator.loss": 4 + 2}
