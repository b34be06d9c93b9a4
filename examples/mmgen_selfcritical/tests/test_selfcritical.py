"""The objective passes mmgen's suite; its gradient is REINFORCE's, written out text by text."""

from dataclasses import replace

import mmgen
import pytest
import torch
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.model import Objectives, compose
from mmgen.testing import TEXTS, ObjectiveSuite, Tiny, Words
from mmgen_generators import Causal, Masked
from mmgen_metrics import CaptionScores, Likelihood

from mmgen_selfcritical import SelfCritical

EXAMPLES = [Example(f"e{n}", {"caption": text}, (text,)) for n, text in enumerate(("a red cat", "the ball", "a"))]
OVERLAP = CaptionScores(tokenizer="own", meteor=False)


class TestSelfCritical(ObjectiveSuite):
    def config(self):
        return SelfCritical(metric=OVERLAP, column="ROUGE-L", samples=4)

    def examples(self):
        return EXAMPLES


def model(generator=Masked, column="ROUGE-L"):
    torch.manual_seed(0)
    objectives = Objectives({"reward": SelfCritical(metric=OVERLAP, column=column, samples=3)})
    parts = Tiny(width=32), {"caption": Words()}, generator(max_tokens=6)
    return compose(*parts, texts=TEXTS, objectives=objectives)


def loss_of(built, examples):
    return built(Collator(built, built.inputs, ("reward",), RngKey(0, "x"))(examples, [0] * len(examples))).mean


def gradient(total, built):
    gradients = torch.autograd.grad(total, [*built.backbone.parameters()], allow_unused=True)
    return torch.cat([gradient.flatten() for gradient in gradients if gradient is not None])


def log_probability(built, batch, tokens):
    """A pass for each token: the log of its share of the tokens that may be written."""
    total, refused = 0.0, torch.tensor([*built.backbone.forbidden_ids])
    for t, token in enumerate(tokens):
        states, _ = built.generator.predicting_states(built, batch, built.generator.reader.lay_out([[tokens[: t + 1]]]))
        shares = built.backbone.logits(states[-1])[: len(built.backbone.tokenizer)].softmax(0)
        total += (shares[token] / shares.index_fill(0, refused, 0.0).sum()).log()
    return total


@pytest.mark.parametrize("generator", [Masked, Causal])
def test_the_gradient_is_reinforce_written_out(generator):
    built, total, rewarded, differ = model(generator), 0.0, 0.0, 0
    for example in EXAMPLES:
        seed = RngKey(0, "x").draw(example, 0, "reward").getrandbits(62)
        batch = replace(Collator(built, built.inputs, ())([example]), seeds=torch.tensor([seed]))
        ways = mmgen.Decoding(), mmgen.Decoding(do_sample=True, num_return_sequences=3)
        _, *drawn = texts = [text for way in ways for text in built.generator.generate(built, batch, way)[0]]
        base, *rewards = OVERLAP.build().score(texts, [example] * 4).per_example["ROUGE-L"]
        for text, reward in zip(drawn, rewards, strict=True):
            total -= (reward - base) / 100 * log_probability(built, batch, text.tokens) / 3
            rewarded, differ = rewarded + reward / 300, differ + (reward != base)
    loss = loss_of(built, EXAMPLES) * len(EXAMPLES)
    assert differ >= 3 and loss.item() == pytest.approx(-rewarded, abs=1e-5)
    torch.testing.assert_close(gradient(loss, built), gradient(total, built), atol=1e-5, rtol=1e-4)


def test_rewards_that_equal_the_baseline_give_no_gradient():
    built, foreign = model(), [replace(example, targets=("elsewhere",)) for example in EXAMPLES]
    assert not gradient(loss_of(built, foreign), built).any() and gradient(loss_of(built, EXAMPLES), built).any()


def test_mistakes_are_one_line():
    with pytest.raises(DataError, match="^'captioneval' has no column 'rouge' for each text; it has: ROUGE-L, "):
        loss_of(model(column="rouge"), EXAMPLES)
    with pytest.raises(DataError, match="^example 'e0' has a prompt; self_critical needs data without prompts$"):
        loss_of(model(), [replace(EXAMPLES[0], labels={"prompt": ("a",)})])
    with pytest.raises(ValueError, match="metric: 'likelihood' needs more than texts and references"):
        SelfCritical(metric=Likelihood(), column="perplexity")
