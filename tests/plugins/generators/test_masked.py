"""The masked generator, compared with the paper's procedure written out (tests/kit/naive.py): the same results."""

from dataclasses import replace

import pytest
import torch
from kit import toys
from mmgen_encoders import Bert, Roberta
from mmgen_generators.masked_writing import MaskedStepper

from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.errors import DataError
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.model import Model

CLOSE = 1e-5


@pytest.fixture(scope="module", params=[Bert, Roberta], ids=["bert", "roberta"])
def model(request):
    return toys.model(request.param)


def batch_of(model, examples, **more):
    return Collator(model, ["caption"], **more)([resolve(example) for example in examples])


def test_gradients_of_a_packed_batch_are_those_of_single_questions(model):
    """K questions that share X have the gradients of K separate pairs."""
    examples = toys.examples(3)
    pairs = [replace(example, targets=(target,)) for example in examples for target in example.targets]
    gradients = []
    for group in (examples, pairs):
        model.zero_grad()
        model(batch_of(model, group)).sums["generator.loss"].backward()
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None]))
    torch.testing.assert_close(*gradients, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("family", toys.families())
def test_the_last_layer_for_predicted_slots_only_is_the_whole_layer(family):
    """States and every gradient equal those of the encoder's full pass; ragged rows, and rows without predictions."""
    model = toys.model(family)
    batch = batch_of(model, toys.examples())
    rows, labels = model.rows(batch, batch.tail)
    predicted = labels != -100
    predicted[1] = False
    results = []
    for states in (model.backbone.encode(rows).last[predicted], model.backbone.states_at(rows, predicted)):
        model.zero_grad()
        (states * torch.linspace(-1, 1, states.numel()).view_as(states)).sum().backward(retain_graph=True)
        results.append((states, {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}))
    (full, gradients), (narrow, narrow_gradients) = results
    torch.testing.assert_close(narrow, full, atol=CLOSE, rtol=0)
    assert gradients.keys() == narrow_gradients.keys()
    for name, gradient in gradients.items():
        torch.testing.assert_close(narrow_gradients[name], gradient, atol=1e-4, rtol=1e-4, msg=name)


def test_gradient_checkpointing_gives_the_same_gradients():
    model, gradients = toys.model(dropout=0.0).train(), []
    for checkpointing in (False, True):
        if checkpointing:
            model.backbone.set_gradient_checkpointing(True)
        model.zero_grad()
        model(batch_of(model, toys.examples())).sums["generator.loss"].backward()
        gradients.append({name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None})
    assert gradients[0].keys() == gradients[1].keys()
    for name, gradient in gradients[0].items():
        torch.testing.assert_close(gradients[1][name], gradient, atol=1e-4, rtol=1e-4, msg=name)


@torch.no_grad()
def test_bf16_is_near():
    """Stated tolerance: 0.5 % of the loss; log-probabilities 0.02 apart in the mean and 0.2 at most, where they spread
    by 1. Decoding with a cache, three rows an input that are exchanged at every step."""
    model, examples = toys.model(), toys.examples(8)
    batch, prefix_batch = batch_of(model, examples), batch_of(model, examples, objectives=())
    losses, steps = [], []
    for low in (False, True):
        draw = torch.Generator().manual_seed(0)
        with torch.autocast("cpu", torch.bfloat16, enabled=low):
            losses.append(model(batch).mean)
            writing, written = MaskedStepper(model, model.prefix(prefix_batch)), torch.empty(24, 0, dtype=torch.long)
            log_probabilities = []
            for _ in range(6):
                log_probabilities.append(writing.next_logits(written).log_softmax(-1))
                rows = torch.arange(8).repeat_interleave(3) * 3 + torch.randint(0, 3, (24,), generator=draw)
                written = torch.cat([written[rows], torch.randint(5, 30, (24, 1), generator=draw)], 1)
                writing.reorder_cache(rows)
            steps.append(torch.stack(log_probabilities))
    assert losses[1] != losses[0] and losses[1] == pytest.approx(float(losses[0]), rel=5e-3)
    apart = (steps[1] - steps[0]).abs()
    assert apart.mean() < 0.02 and apart.max() < 0.2 and steps[0].std() > 0.9


def test_a_row_longer_than_the_encoders_positions_is_refused():
    model = toys.model()
    model.backbone.max_positions = 12
    with pytest.raises(
        DataError, match="an example needs 5 positions, but the encoder has 12, 9 of them reserved for the text"
    ):
        generate(model, [Example("x", {"caption": "red ball dog near"})])


def test_a_long_target_is_cut_and_still_ends(model):
    long = Example("long", {"caption": "a"}, (" ".join(["ball"] * 40), "ball"))
    collate = Collator(model, ["caption"])
    first, second = collate.targets["generator"].targets(long)
    assert len(first) == 9 and first[-1] == model.backbone.end_id


@torch.no_grad()
def test_the_vocabulary_head_in_chunks_is_the_head_at_once(model, monkeypatch):
    batch = batch_of(model, toys.examples())
    expected = model(batch)
    monkeypatch.setattr("mmgen.objectives.HEAD_SLOTS", 7)
    torch.testing.assert_close(model(batch).sums, expected.sums, atol=1e-3, rtol=1e-5)


def test_a_limit_that_leaves_no_room_for_inputs_is_refused():
    model = toys.model(Bert)
    model.generator.reader.max_tokens = model.backbone.max_positions
    with pytest.raises(
        DataError, match="^generator.max_tokens is 512, but the encoder has only 512 positions for inputs"
    ):
        Model(model.backbone, model.embedders, model.generator)
