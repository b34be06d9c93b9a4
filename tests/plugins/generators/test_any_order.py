"""The any-order generator: its loss, compared with the masked generator's and with enumerations."""

import itertools
import math
from dataclasses import replace

import pytest
import torch
from kit import toys
from kit.any_order import any_order
from mmgen_generators import AnyOrder, AnyOrderDecoding
from pydantic import ValidationError

from mmgen.attention_maps import last_layer, token_attention
from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.errors import UnavailableError
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.tensors import Targets
from mmgen.testing import GeneratorSuite


class TestAnyOrder(GeneratorSuite):
    def config(self):
        return AnyOrder(max_tokens=12)

    def decodings(self):
        return (
            AnyOrderDecoding(steps=2),
            AnyOrderDecoding(steps=3, remask=True, lengths=1),
            AnyOrderDecoding(temperature=1.0, num_return_sequences=3, order="random"),
        )


@pytest.mark.slow
class TestBlocks(GeneratorSuite):
    def config(self):
        return AnyOrder(max_tokens=11, block=4, length="end")

    def decodings(self):
        return AnyOrderDecoding(threshold=0.5), AnyOrderDecoding(order="entropy", steps=2)


def like_masked(**keys):
    """The model with the masked generator, and one with the same weights and blocks of one token."""
    masked = toys.model(dropout=0.0)
    ours = any_order(block=1, length="end", **keys)
    ours.load_state_dict(masked.state_dict())
    return masked, ours


@pytest.mark.slow
def test_blocks_of_one_are_the_masked_generator_to_the_bit():
    """The same loss, gradients and greedy texts, for ragged rows with several questions each. Scores are means that are
    added up in another way; so are likelihoods."""
    results, likelihoods, examples = [], [], toys.examples()
    for model in like_masked():
        batch = Collator(model, ["caption"])(examples)
        loss = model(batch)
        likelihoods.append(model.generator.likelihood(model, batch, examples))
        loss.mean.backward()
        gradients = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
        texts = [text for (text,) in generate(model, toys.examples(12, seed=3))]
        results.append((loss.counts, loss.sums["generator.loss"], gradients, texts))
    (counts, loss, gradients, texts), (same_counts, same_loss, same_gradients, same_texts) = results
    assert counts == same_counts and torch.equal(loss, same_loss) and model.generator.likelihood_kind == "exact"
    torch.testing.assert_close(*likelihoods, atol=1e-5, rtol=0)
    assert [text.tokens for text in texts] == [text.tokens for text in same_texts]
    assert [text.score for text in texts] == pytest.approx([text.score for text in same_texts], abs=1e-6)
    assert gradients.keys() == same_gradients.keys()
    assert all(torch.equal(gradients[name], same_gradients[name]) for name in gradients)


def summed_loss(model, example, masked):
    """The loss of an example with one target whose places are masked as in `masked`, and the number of passes."""
    reader = model.generator.reader
    collate = Collator(model, ["caption"])
    batch = collate([example])
    tail, weights = reader._build_tail([reader.targets(example)], [[masked]])
    labels = {**batch.targets["generator"].labels, "weights": weights}
    return float(model.generator(model, batch, Targets({"loss": 1}, labels, tail)).sums["loss"].detach())


def log_prob(model, example, known, place):
    """log p of the token at `place` of the example's target, given the tokens at `known` places: a pass of its own."""
    reader = model.generator.reader
    (target,) = reader.targets(example)
    hidden = [t not in known for t in range(len(target) - 1)]
    tail, _ = reader._build_tail([[target]], [[hidden]])
    prefix = model.prefix(Collator(model, ["caption"])([example]))
    rows = prefix.slots.followed_by(model.behind(prefix, tail))
    states = model.backbone.encode(rows).last[0, prefix.slots.positions.shape[1] + place]
    return float(model.backbone.logits(states).log_softmax(-1)[target[place]].detach())


@torch.no_grad()
def test_the_mean_over_noise_is_the_mean_over_orders_and_an_upper_bound():
    """Three words: 7 sets of masked places against 6 orders. The mean is masked diffusion's integral too, and is at
    least -log of the mean probability over orders."""
    model = any_order()
    example = resolve(Example("e", {"caption": "red ball"}, ("what color is",)))
    length_loss = summed_loss(model, example, [False] * 3)
    losses = {}  # set of masked places -> loss
    for masked in itertools.product([False, True], repeat=3):
        if any(masked):
            losses[masked] = summed_loss(model, example, list(masked)) - length_loss
    by_count = {m: [loss for masked, loss in losses.items() if sum(masked) == m] for m in (1, 2, 3)}
    mean = sum(sum(group) / len(group) for group in by_count.values()) / 3
    orders = []
    for order in itertools.permutations(range(3)):
        orders.append(sum(log_prob(model, example, set(order[:done]), place) for done, place in enumerate(order)))
    assert mean == pytest.approx(-sum(orders) / 6, rel=1e-5)
    assert mean >= -math.log(sum(map(math.exp, orders)) / 6)
    ts = (torch.arange(20_000, dtype=torch.float64) + 0.5) / 20_000
    integral = 0.0
    for masked, loss in losses.items():
        m = sum(masked)
        integral += float((ts ** (m - 1) * (1 - ts) ** (3 - m)).mean()) * loss * m / 3  # without the weight 3 / m
    assert mean == pytest.approx(integral, rel=1e-4)


@pytest.mark.parametrize("keys", [{}, {"length": "end"}, {"length": "end", "block": 4}], ids=str)
def test_packed_questions_are_single_rows(keys, monkeypatch):
    """Losses and gradients of K questions that share X, and of single questions with the same noise."""
    model = any_order(**keys)
    reader = model.generator.reader
    noise = lambda rows, row, number, target: [bool((t + len(target)) % 3) for t in reader.maskable_places(target)]  # noqa: E731
    monkeypatch.setattr(reader, "_draw_noise", noise)
    collate = Collator(model, ["caption"])
    examples = [resolve(example) for example in toys.examples()]
    singles = [replace(example, targets=(target,)) for example in examples for target in example.targets]
    results = []
    for group in (examples, singles):
        model.zero_grad()
        loss = model(collate(group))
        loss.sums["generator.loss"].backward()
        gradient = torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])
        results.append((loss.counts, float(loss.mean.detach()), gradient))
    assert results[0][0] == results[1][0]
    assert results[0][1] == pytest.approx(results[1][1], abs=1e-5)
    torch.testing.assert_close(results[0][2], results[1][2], atol=1e-4, rtol=1e-4)


@torch.no_grad()
@pytest.mark.parametrize("block", [2, 4])
def test_a_block_sees_the_clean_blocks_before_it_and_its_own_noise(block):
    """One pass over all blocks gives the distributions of one pass per block, whose text is laid out without the
    others."""
    model = any_order(block=block, length="end")
    reader, backbone = model.generator.reader, model.backbone
    example = resolve(Example("e", {"caption": "red ball"}, ("what color is the house near dog",)))
    (target,) = reader.targets(example)
    assert len(target) == 8
    masked = [True, False] * 4
    prefix = model.prefix(Collator(model, ["caption"])([example]))
    length = prefix.slots.positions.shape[1]

    def states(tail):
        return backbone.encode(prefix.slots.followed_by(model.behind(prefix, tail))).last[0, length:]

    together = states(reader._build_tail([[target]], [[masked]])[0])[-8:]
    for first in range(0, 8, block):
        text = target[:first]
        hidden = masked[first : first + block]
        layout = reader._build_tail([[text + target[first : first + block]]], [[[False] * first + hidden]])[0]
        alone = states(layout)[-block:]
        torch.testing.assert_close(together[first : first + block], alone, atol=1e-5, rtol=0)
        changed = reader._build_tail([[[*text, *target[first : first + block]]]], [[[True] * first + hidden]])[0]
        torch.testing.assert_close(states(changed)[-block:], alone, atol=1e-5, rtol=0)  # earlier noise is not seen


def test_an_empty_target_has_only_a_length():
    model = any_order()
    batch = Collator(model, ["caption"])([Example("e", {"caption": "red"}, ("",))])
    assert batch.tail.labels.tolist() == [[-100]] and batch.counts == {"generator.loss": 1}
    assert float(model(batch).mean.detach()) > 0


def test_keys_that_exclude_each_other_are_refused():
    with pytest.raises(ValidationError, match='length: blocks need length = "end"; set it, or remove block'):
        AnyOrder(block=4)
    for keys, message in (
        ({"num_return_sequences": 2}, "num_return_sequences: 2 different texts need a temperature above 0"),
        ({"steps": 2, "threshold": 0.5}, "threshold: cannot be combined with steps; remove one of the two"),
        ({"temperature": 1e-300}, "temperature: must be 0, or from 1e-6 to 1e6, not 1e-300"),
        ({"remask": True}, "remask: needs steps, the number of passes"),
    ):
        with pytest.raises(ValidationError, match=message):
            AnyOrderDecoding(**keys)
    assert AnyOrder(length="end").refuses(AnyOrderDecoding(lengths=1)) == {
        "lengths": 'generator.length = "end" predicts no lengths; remove lengths'
    }
    assert not AnyOrder().refuses(AnyOrderDecoding(lengths=1))


def test_the_masked_generators_weights_fit():
    """All weights but those of the length head."""
    lacking = any_order().load_state_dict(toys.model().state_dict(), strict=False)
    assert not lacking.unexpected_keys
    assert {name.rsplit(".", 2)[0] for name in lacking.missing_keys} == {"generator.length_head"}


def test_attention_is_refused_where_several_passes_wrote_a_text():
    model = any_order(length="end", block=4)
    batch = Collator(model, ["caption"], objectives=())(toys.examples(1))
    with pytest.raises(UnavailableError, match="does not encode texts as laid out, so its attention cannot be shown"):
        token_attention(model, batch, [[20, 3]], {"last": last_layer})
