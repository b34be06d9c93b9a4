"""How probable a text is: packed log-probabilities equal the procedure written out, and add up to training's loss."""

from dataclasses import replace

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

WAYS = pytest.mark.parametrize("keys", [{}, {"length": "end"}, {"length": "end", "block": 3}], ids=str)


def assert_close(values, expected):
    torch.testing.assert_close(values, torch.stack([*expected]), atol=1e-5, rtol=0)


@torch.no_grad()
def likelihood(model, examples):
    """(n,) for each example. Minus their sum is the loss, but for orders that are drawn."""
    batch, reader = Collator(model, model.inputs)(examples), model.generator.reader
    values, loss = model.generator.likelihood(model, batch, examples), model(batch)
    assert loss.counts == {"generator.loss": len(values)}
    if model.generator.likelihood_kind == "exact":
        assert float(loss.sums["generator.loss"]) == pytest.approx(-float(values.sum()), rel=1e-5)
    return values.split([sum(map(len, reader.targets(example))) for example in examples])


def prompted(example):
    """The example with prompts of different lengths."""
    prompts = tuple(" ".join(toys.WORDS[: 1 + number]) for number in range(len(example.targets)))
    return replace(example, labels={"prompt": prompts})


@torch.no_grad()
@pytest.mark.parametrize("family", toys.families())
def test_masked_is_the_procedure_written_out_and_the_loss(family):
    """Ragged prefixes, padding, several texts of one input, with prompts and without, all in one pass."""
    model = toys.model(family)
    examples = [resolve(prompted(example) if n % 2 else example) for n, example in enumerate(toys.examples())]
    for example, values in zip(examples, likelihood(model, examples), strict=True):
        x, expected = naive.text_prefix(model.backbone, example.inputs["caption"]), []
        for number, target in enumerate(model.generator.reader.targets(example)):
            prompt = model.backbone.encode_text("".join(example.labels.get("prompt", ())[number : number + 1]))
            shares = [naive.distribution(model.backbone, x, target[:t], prompt) for t in range(len(target))]
            expected += [share[token] for share, token in zip(shares, target, strict=True)]
        assert_close(values, expected)


def last_states(model, example, tail):
    """The states of a row with this tail, which is encoded alone."""
    prefix = model.prefix(Collator(model, ["caption"], ())([example]))
    return model.backbone.encode(prefix.slots.followed_by(model.behind(prefix, tail))).last[0]


@torch.no_grad()
def test_causal_is_one_pass_a_token():
    torch.manual_seed(0)
    model = compose(Tiny(width=32), {"caption": Words()}, Causal(max_tokens=8), texts=TEXTS).eval()
    several = Example("a", {"caption": "the cat"}, ("what color is the cat ?", "a red cat ?"))
    examples = [resolve(several), resolve(Example("b", {"caption": "a red ball near the water"}, ("the ball ?",)))]
    reader = model.generator.reader
    for example, values in zip(examples, likelihood(model, examples), strict=True):
        expected = []
        for target in reader.targets(example):
            for t, token in enumerate(target):
                state = last_states(model, example, reader.lay_out([[[*target[:t], token]]]))[-1]
                expected.append(model.backbone.logits(state).log_softmax(-1)[token])
        assert_close(values, expected)


@pytest.mark.slow
@torch.no_grad()
@WAYS
def test_any_order_is_the_drawn_order_written_out(keys):
    """A pass a token, given the tokens before it in the order; alone as in a batch."""
    model, examples = any_order(**keys), [resolve(example) for example in toys.examples(3)]
    reader = model.generator.reader
    assert model.generator.likelihood_kind == "of one drawn order"
    for example, values in zip(examples, likelihood(model, examples), strict=True):
        assert_close(values, likelihood(model, [example])[0])
        first, expected = model.encode(Collator(model, ["caption"], ())([example])).first, []
        for target in reader.targets(example):
            ranks, size = reader._draw_ranks(target), reader.canvas(len(target))
            filled, chain = [*target, *[model.backbone.end_id] * size], torch.zeros(size)
            for place, rank in enumerate(ranks):
                block = place // reader.block * reader.block
                hidden = [other >= block and ranks[other] >= rank for other in range(len(ranks))]
                states = last_states(model, example, reader._build_tail([[target]], [[hidden]])[0])
                chain[place] = model.backbone.logits(states[place - size]).log_softmax(-1)[filled[place]]
            last = chain[len(target) - 1 :].sum()
            if not reader.ends:
                last = model.generator.length_log_probs(first)[0, len(target) - 1]
            expected += [*chain[: len(target) - 1], last]
        assert_close(values, expected)


@torch.no_grad()
@pytest.mark.parametrize("keys", [None, {}, {"length": "end"}, {"length": "end", "block": 3}], ids=str)
def test_a_blank_follows_from_what_stands_before_it_or_from_all_other_words(keys):
    """A pass of its own for each text; for any order, words that are not known yet are masked too."""
    model, example = toys.model() if keys is None else any_order(**keys), resolve(toys.examples(1)[0])
    backbone, batch = model.backbone, Collator(model, ["caption"], predicting=True)([example])
    first, second = (backbone.encode_text(word)[0] for word in ("red", "ball"))
    mask, end, reader = backbone.mask_id, backbone.end_id, model.generator.reader
    texts = [[mask, first, mask, second, end], [second, first, first, mask, mask, first, end]]
    logits, x = backbone.logits(model.generator.blank_states(model, batch, texts)), None
    for text, result in zip(texts, logits.log_softmax(-1), strict=True):
        place = text.index(mask)
        if keys is None:
            x = naive.text_prefix(backbone, example.inputs["caption"])
            expected = naive.distribution(backbone, x, text[:place])
        else:  # ids that are masks stay masks
            tail, _ = reader._build_tail([[text]], [[[False] * len(reader.maskable_places(text))]])
            state = last_states(model, example, tail)[place - reader.canvas(len(text))]
            expected = backbone.logits(state).log_softmax(-1)
        torch.testing.assert_close(result, expected, atol=1e-5, rtol=0)
