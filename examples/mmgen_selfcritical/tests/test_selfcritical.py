"""The objective passes mmgen's suite; its gradient is REINFORCE's, written out text by text."""

from dataclasses import replace
from typing import Literal

import mmgen
import pytest
import torch
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.errors import DataError
from mmgen.examples import Example, Scores
from mmgen.model import Objectives, compose
from mmgen.parts import Metric
from mmgen.testing import TEXTS, ObjectiveSuite, Tiny, Words
from mmgen_generators import Causal, Masked
from mmgen_metrics import CaptionScores

from mmgen_selfcritical import SelfCritical
from mmgen_selfcritical.objective import SEEDS

EXAMPLES = [Example(f"e{n}", {"caption": text}, (text,)) for n, text in enumerate(("a red cat", "the ball", "a"))]


class Letters(mmgen.MetricConfig):
    """The share of a text's letters that are one of a few."""

    type: Literal["letters"] = "letters"
    letters: str = "aeiou"

    def build(self):
        return LettersMetric(self.letters)


class LettersMetric(Metric):
    def __init__(self, letters):
        self.letters = letters

    def score(self, generations, examples):
        shares = [100 * sum(map(text.text.count, self.letters)) / max(1, len(text.text)) for text in generations]
        return Scores({}, {"share": shares})


class TestSelfCritical(ObjectiveSuite):
    def config(self):
        return SelfCritical(metric=CaptionScores(tokenizer="own", meteor=False), column="ROUGE-L", samples=8)


def model(letters="aeiou", generator=None, **more):
    torch.manual_seed(0)
    config = SelfCritical(metric=Letters(letters=letters), column="share", samples=3, **more)
    parts = Tiny(width=32), {"caption": Words()}, generator or Masked(max_tokens=6)
    return compose(*parts, texts=TEXTS, objectives=Objectives({"reward": config}))


def batch_of(built, examples=EXAMPLES):
    return Collator(built, built.inputs, ("reward",), RngKey(0, "x"))(examples, [0] * len(examples))


def gradient(total, built):
    grads = torch.autograd.grad(total, [*built.backbone.parameters()], allow_unused=True)
    return torch.cat([grad.flatten() for grad in grads if grad is not None])


def log_probability(built, example, tokens):
    """A pass for each token: the log of its share among the tokens that may be written."""
    total, batch = torch.zeros(()), Collator(built, built.inputs, ())([example])
    refused = [*built.backbone.forbidden_ids]
    for t in range(len(tokens)):
        tail = built.generator.reader.lay_out([[[*tokens[: t + 1]]]])
        states, _ = built.generator.predicting_states(built, batch, tail)
        logits = built.backbone.logits(states[-1])[: len(built.backbone.tokenizer)]
        kept = torch.ones_like(logits, dtype=torch.bool).index_fill(0, torch.tensor(refused), False)
        total = total + logits[tokens[t]] - logits[kept].logsumexp(0)
    return total


@pytest.mark.parametrize("generator", [Masked(max_tokens=6), Causal(max_tokens=6)], ids=lambda config: config.type)
def test_the_gradient_is_reinforce_written_out(generator):
    built = model(generator=generator)
    batch, metric = batch_of(built), LettersMetric("aeiou")
    total, rewards, compared = torch.zeros(()), [], 0
    for place, example in enumerate(EXAMPLES):
        alone = replace(Collator(built, built.inputs, ())([example]), seeds=batch.label(SEEDS)[place : place + 1])
        with torch.no_grad():
            (greedy,), (drawn,) = (
                built.generator.generate(built, alone, options)
                for options in (mmgen.Decoding(), mmgen.Decoding(do_sample=True, num_return_sequences=3))
            )
        (base, *scores) = [score / 100 for score in metric.score([*greedy, *drawn], ()).per_example["share"]]
        for text, reward in zip(drawn, scores, strict=True):
            total = total - (reward - base) * log_probability(built, example, text.tokens) / 3
            compared += reward != base
        rewards += scores
    loss = built(batch).sums["reward.loss"]
    assert compared >= 5 and loss.item() == pytest.approx(-sum(rewards) / 3, rel=1e-5)
    torch.testing.assert_close(gradient(loss, built), gradient(total, built), atol=1e-5, rtol=1e-4)


def test_equal_rewards_give_no_gradient():
    built = model(letters="")
    assert not gradient(built(batch_of(built)).mean, built).any()
    other = model()
    assert gradient(other(batch_of(other)).mean, other).any()


def test_dropout_is_off_while_texts_are_drawn_and_on_afterwards():
    built = model().train()
    assert built(batch_of(built)).sums["reward.loss"] == model().eval()(batch_of(built)).sums["reward.loss"]
    assert built.training


def test_mistakes_are_one_line():
    built = model()
    built.objectives["reward"].config = SelfCritical(metric=Letters(), column="shares")
    with pytest.raises(DataError, match="^'letters' has no column 'shares' for each text; it has: share$"):
        built(batch_of(built))
    prompted = replace(EXAMPLES[0], labels={"prompt": ("a",)})
    with pytest.raises(DataError, match="^example 'e0' has a prompt; self_critical needs data without prompts$"):
        batch_of(built, [prompted])


def test_a_metric_must_read_texts_alone():
    class OfPictures(Letters):
        needs_pictures = True

    with pytest.raises(ValueError, match="metric: 'letters' needs more than texts and references"):
        SelfCritical(metric=OfPictures(), column="share")
