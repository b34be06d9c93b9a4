"""Noise in targets: its weights, its draws, and which updates it gives in halves and in several processes."""

import pytest
import torch
from kit import toys
from kit.any_order import any_order
from kit.processes import log, several
from kit.training import LimitedMemory, largest_difference, train_step

from mmgen.data.collate import Collator
from mmgen.examples import Example


@pytest.mark.parametrize("keys", [{}, {"length": "end"}, {"length": "end", "block": 4}], ids=str)
def test_a_masked_place_weighs_places_over_masked_places(keys):
    """Of a block, or of the whole text; other slots weigh nothing."""
    model = any_order(**keys)
    batch = Collator(model, ["caption"])([Example("e", {"caption": "red"}, (" ".join(toys.WORDS[:7]),))])
    weights, labels = batch.targets["generator"].labels["weights"][0], batch.tail.labels[0]
    assert ((weights > 0) == (labels != -100)).all()
    size = keys.get("block", len(labels))
    first = size % len(labels)  # behind the clean blocks
    for block, targets in zip(weights[first:].split(size), labels[first:].split(size), strict=True):
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


@pytest.mark.slow
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


BLOCKS = ({}, {"block": 4, "length": "end"})

# The second of two processes has little memory.
CRAMPED = """
    import sys
    from pathlib import Path
    from kit import toys
    from kit.any_order import any_order
    from kit.training import LimitedMemory, step
    from mmgen.data.collate import Source
    from mmgen.training import distributed
    from mmgen.training.train import train
    model = any_order(**eval(sys.argv[1]))
    accelerator = distributed.start()
    if accelerator.process_index == 1:
        LimitedMemory(model, pairs=4)
    train(model, toys.context(Path("trained"), step(), accelerator=accelerator), [Source(toys.examples(20))])
"""


@pytest.mark.slow
@pytest.mark.parametrize("keys", [BLOCKS[0], pytest.param(BLOCKS[1], marks=pytest.mark.exhaustive)])
def test_halves_and_processes_change_nothing(tmp_path, keys):
    undisturbed, cramped = any_order(**keys), any_order(**keys)
    expected = train_step(tmp_path / "undisturbed", undisturbed)
    LimitedMemory(cramped, pairs=4)
    halved = train_step(tmp_path / "cramped", cramped)
    assert halved[-1]["micro_batch_size"] and largest_difference(undisturbed, cramped) < 5e-5
    done = several(2, tmp_path, CRAMPED, repr(keys))
    assert done.returncode == 0, done.stderr
    together = log(tmp_path / "trained")
    assert together[-1]["micro_batch_size"]
    for records in (halved, together):
        assert [record["loss"] for record in records] == pytest.approx(
            [record["loss"] for record in expected], abs=1e-5
        )
