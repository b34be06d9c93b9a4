"""How probable a text is: packed log-probabilities equal the procedure written out, and add up to training's loss."""

from dataclasses import replace
from itertools import permutations

import pytest
import torch
from kit import naive, toys
from kit.any_order import any_order
from mmgen_generators import Causal

from mmgen.data.collate import Collator
from mmgen.data.seeds import resolve
from mmgen.examples import Example
from mmgen.model import compose
from mmgen.testing import TEXTS, Tiny, Words

CLOSE = 1e-5


def tokens_of(model, example):
    return [token for target in model.generator.reader.targets(example) for token in target]


@torch.no_grad()
def likelihood(model, examples):
    """(n,) for each example."""
    batch = Collator(model, model.inputs)(examples)
    values = model.generator.likelihood(model, batch, examples)
    return values.split([len(tokens_of(model, example)) for example in examples]), model(batch)


def prompted(example):
    """The example with prompts of different lengths."""
    prompts = tuple(" ".join(toys.WORDS[: 1 + number]) for number in range(len(example.targets)))
    return replace(example, labels={"prompt": prompts})


@torch.no_grad()
@pytest.mark.parametrize("prompts", [False, True], ids=["", "prompts"])
@pytest.mark.parametrize("family", toys.families())
def test_masked_is_the_procedure_written_out_and_the_loss(family, prompts):
    """Ragged prefixes, padding, several texts of one input, all in one pass."""
    model, examples = toys.model(family), [resolve(example) for example in toys.examples()]
    examples = [prompted(example) if prompts and place % 2 else example for place, example in enumerate(examples)]
    results, loss = likelihood(model, examples)
    for example, values in zip(examples, results, strict=True):
        x, expected = naive.text_prefix(model.backbone, example.inputs["caption"]), []
        for number, target in enumerate(model.generator.reader.targets(example)):
            before = model.backbone.encode_text(example.labels["prompt"][number]) if "prompt" in example.labels else []
            for t, token in enumerate(target):
                if before:
                    expected.append(behind_a_prompt(model.backbone, x, before, target[:t])[token])
                else:
                    expected.append(naive.distribution(model.backbone, x, target[:t])[token])
        torch.testing.assert_close(values, torch.stack(expected), atol=CLOSE, rtol=0)
    assert float(loss.sums["generator.loss"]) == pytest.approx(-float(torch.cat(results).sum()), rel=CLOSE)


def behind_a_prompt(backbone, x, prompt, written):
    """A prompt's tokens see one another, as an input's do, and X."""
    from mmgen.attention import visible
    from mmgen.tensors import MASK, PREFIX, WRITTEN, Layout, Slots

    ids = torch.tensor([*prompt, *written, backbone.mask_id])
    states = torch.cat([x, backbone.embed(ids)])[None]
    role = [PREFIX] * len(x) + [WRITTEN] * (len(ids) - 1) + [MASK]
    time = [0] * (len(x) + len(prompt)) + [*range(1, len(written) + 2)]
    group = [0] * len(x) + [1] * len(ids)
    layout = Layout(*(torch.tensor([row]) for row in (role, group, time)))
    assert visible(layout)[0, -1].all()
    places = torch.arange(states.shape[1])[None]
    last = backbone.encode(Slots(states, places, torch.zeros_like(places), layout)).last[0, -1]
    return backbone.logits(last).log_softmax(-1)


@torch.no_grad()
def test_causal_is_one_pass_a_token():
    torch.manual_seed(0)
    model = compose(Tiny(width=32), {"caption": Words()}, Causal(max_tokens=8), texts=TEXTS).eval()
    examples = [
        Example("a", {"caption": "the cat"}, ("what color is the cat ?", "a red cat ?")),
        Example("b", {"caption": "a red ball near the water"}, ("the ball ?",)),
    ]
    results, loss = likelihood(model, [resolve(example) for example in examples])
    for example, values in zip(examples, results, strict=True):
        prefix, expected = model.prefix(Collator(model, ["caption"], ())([example])), []
        for target in model.generator.reader.targets(example):
            for t, token in enumerate(target):
                tail = model.generator.reader.lay_out([[[*target[:t], token]]])
                rows = prefix.slots.followed_by(model.behind(prefix, tail))
                expected.append(model.backbone.logits(model.backbone.encode(rows).last[0, -1]).log_softmax(-1)[token])
        torch.testing.assert_close(values, torch.stack(expected), atol=CLOSE, rtol=0)
    assert float(loss.sums["generator.loss"]) == pytest.approx(-float(torch.cat(results).sum()), rel=CLOSE)


@torch.no_grad()
@pytest.mark.parametrize("keys", [{}, {"length": "end"}, {"length": "end", "block": 3}], ids=str)
def test_any_order_is_the_drawn_order_written_out(keys):
    """A pass a token, given the tokens before it in the order; alone as in a batch."""
    model, examples = any_order(**keys), [resolve(example) for example in toys.examples(3)]
    reader, (results, _) = model.generator.reader, likelihood(model, examples)
    assert model.generator.likelihood_kind == "of one drawn order"
    for example, values in zip(examples, results, strict=True):
        (alone,), _ = likelihood(model, [example])
        torch.testing.assert_close(values, alone, atol=CLOSE, rtol=0)
        batch, expected = Collator(model, ["caption"], ())([example]), []
        lengths = None if reader.ends else model.generator.length_log_probs(model.encode(batch).first)[0]
        for target in reader.targets(example):
            ranks, size = reader._draw_ranks(target), reader.canvas(len(target))
            chain = torch.zeros(size)
            for place in range(len(ranks)):
                first = place // reader.block * reader.block
                hidden = [other >= first and ranks[other] >= ranks[place] for other in range(len(ranks))]
                tail, _ = reader._build_tail([[target]], [[hidden]])
                prefix = model.prefix(batch)
                rows = prefix.slots.followed_by(model.behind(prefix, tail))
                states = model.backbone.encode(rows).last[0, place - size]
                filled = [*target, *[model.backbone.end_id] * size][place]
                chain[place] = model.backbone.logits(states).log_softmax(-1)[filled]
            last = chain[len(target) - 1 :].sum() if lengths is None else lengths[len(target) - 1]
            expected += [*chain[: len(target) - 1], last]
        torch.testing.assert_close(values, torch.stack(expected), atol=CLOSE, rtol=0)


@torch.no_grad()
def test_the_mean_over_orders_is_a_lower_bound(monkeypatch):
    """Three tokens and their length: the mean over all orders is at most the log of the mean probability, and minus
    the mean of training's loss, which test_any_order.py enumerates."""
    model = any_order()
    example = resolve(Example("e", {"caption": "red ball"}, ("what color is",)))
    totals = []
    for order in permutations(range(3)):
        monkeypatch.setattr(type(model.generator.reader), "_draw_ranks", lambda self, target, order=order: [*order])
        (values,), _ = likelihood(model, [example])
        totals.append(values.sum())
    totals = torch.stack(totals)
    assert totals.mean() < totals.exp().mean().log() and totals.std() > 1e-3


@torch.no_grad()
def test_blocks_of_one_are_exact():
    masked, ours = toys.model(dropout=0.0), any_order(block=1, length="end")
    ours.load_state_dict(masked.state_dict())
    examples = [resolve(example) for example in toys.examples()]
    assert ours.generator.likelihood_kind == "exact"
    expected, _ = likelihood(masked, examples)
    results, _ = likelihood(ours, examples)
    torch.testing.assert_close(torch.cat(results), torch.cat(expected), atol=CLOSE, rtol=0)


@torch.no_grad()
def test_a_blank_follows_from_what_stands_before_it():
    model, example = toys.model(), resolve(toys.examples(1)[0])
    backbone, batch = model.backbone, Collator(model, ["caption"], predicting=True)([example])
    first, second = (backbone.encode_text(word)[0] for word in ("red", "ball"))
    mask, end = backbone.mask_id, backbone.end_id
    texts = [[mask, first, mask, end], [second, mask, mask, first, end], [first, second, mask, end]]
    logits = backbone.logits(model.generator.blank_states(model, batch, texts))
    x = naive.text_prefix(backbone, example.inputs["caption"])
    expected = [naive.distribution(backbone, x, text[: text.index(mask)]) for text in texts]
    torch.testing.assert_close(logits.log_softmax(-1), torch.stack(expected), atol=CLOSE, rtol=0)


@torch.no_grad()
@pytest.mark.parametrize("keys", [{}, {"length": "end"}, {"length": "end", "block": 3}], ids=str)
def test_a_blank_of_any_order_follows_from_all_other_words(keys):
    """A pass of its own for each text; words that are not known yet are masked too."""
    model, example = any_order(**keys), resolve(toys.examples(1)[0])
    backbone, batch = model.backbone, Collator(model, ["caption"], predicting=True)([example])
    first, second = (backbone.encode_text(word)[0] for word in ("red", "ball"))
    mask, end, reader = backbone.mask_id, backbone.end_id, model.generator.reader
    texts = [[mask, first, mask, second, end], [second, first, first, mask, mask, first, end]]
    logits = backbone.logits(model.generator.blank_states(model, batch, texts))
    for text, result in zip(texts, logits.log_softmax(-1), strict=True):
        tail, _ = reader._build_tail([[text]], [[[False] * len(reader._maskable_places(text))]])  # its ids have masks
        prefix = model.prefix(batch)
        rows = prefix.slots.followed_by(model.behind(prefix, tail))
        place = text.index(mask) - reader.canvas(len(text))
        expected = backbone.logits(backbone.encode(rows).last[0, place]).log_softmax(-1)
        torch.testing.assert_close(result, expected, atol=CLOSE, rtol=0)
