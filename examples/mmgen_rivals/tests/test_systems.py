"""The LSTM backbone and the systems on it, against the same written out one slot after the other."""

import pytest
import torch
from mmgen.evaluation.answers import generate
from mmgen.testing import BackboneSuite

from mmgen_rivals import Lstm, MonteCarloDecoding
from written_out import SYSTEMS, collated, crossed, distribution, examples, greedy, model

EVERY_SYSTEM = pytest.mark.parametrize("system", SYSTEMS)


class TestLstm(BackboneSuite):
    def config(self):
        return Lstm(hidden_size=24, vocab_size=200)


class TestTwoLayers(BackboneSuite):
    def config(self):
        return Lstm(hidden_size=16, num_hidden_layers=2, vocab_size=200)


@torch.no_grad()
@EVERY_SYSTEM
def test_max_takes_the_most_probable_word_after_the_other(system):
    """Texts and scores of a batch with captions of all lengths are those of the naive decoder, for each alone."""
    rival = model(system, num_hidden_layers=2 if system == "max" else 1)
    for example, (text,) in zip(examples(), generate(rival, examples()), strict=True):
        tokens, score = greedy(rival, example)
        assert text.tokens == tokens and text.score == pytest.approx(score, abs=1e-5)
        ((alone,),) = generate(rival, [example])
        assert alone.tokens == tokens and alone.score == pytest.approx(score, abs=1e-5)


@EVERY_SYSTEM
def test_a_small_set_is_memorised(system):
    """Questions that no part of the inputs tells alone: nine pairs of a caption and a picture, or nine of one kind."""
    kinds = {"words": (9, 1), "max": (1, 9)}.get(system, (3, 3))
    rival, pairs = model(system, noise=0, dropout=0, fusion_dropout=0, monte_carlo_dropout=0), crossed(*kinds)
    batch = collated(rival, pairs)
    optimizer = torch.optim.Adam(rival.parameters(), lr=1e-2)
    for _ in range(120):
        optimizer.zero_grad()
        loss = rival(batch).mean
        loss.backward()
        optimizer.step()
    assert float(loss.detach()) < 0.1
    assert [text.text for (text,) in generate(rival, pairs)] == [example.targets[0] for example in pairs]


@torch.no_grad()
@EVERY_SYSTEM
def test_inputs_reach_the_end_of_a_text_before_training(system):
    """The logits of the same ten words differ between rows."""
    rival, pairs = model(system, noise=0, hidden_size=160), crossed(9, 1) + crossed(1, 9)
    words = rival.backbone.encode_text("dog tree house ball cat") * 2
    logits = torch.stack([distribution(rival, example, words) for example in pairs])
    assert logits.std(0).mean() > 0.001


@torch.no_grad()
@EVERY_SYSTEM
def test_teacher_forcing_is_step_by_step(system):
    """The loss of a batch, whose examples have one to three questions, is the naive decoder's."""
    rival = model(system)
    total = 0.0
    for example in examples():
        for target in rival.generator.reader.targets(example):
            for place, token in enumerate(target):
                total -= float(distribution(rival, example, target[:place])[token])
    loss = rival(collated(rival, examples()))
    assert float(loss.sums["generator.loss"]) == pytest.approx(total, rel=1e-5)


@torch.no_grad()
@EVERY_SYSTEM
def test_beams_are_different_texts_with_the_scores_of_step_by_step(system):
    rival = model(system)
    options = MonteCarloDecoding(num_beams=4, num_return_sequences=4)
    plain = model(system)
    plain.backbone.caches = False
    for example, texts, uncached in zip(
        examples(), generate(rival, examples(), options), generate(plain, examples(), options), strict=True
    ):
        assert len({text.tokens for text in texts}) == 4
        assert [text.tokens for text in texts] == [text.tokens for text in uncached]
        for text in texts:
            logps = [distribution(rival, example, text.tokens[:t])[token] for t, token in enumerate(text.tokens)]
            assert text.score == pytest.approx(float(torch.stack(logps).mean()), abs=1e-5)


@torch.no_grad()
def test_sample_draws_from_the_distribution_whose_maximum_max_takes():
    """Sample and Max of Yang et al. are one network: shares of 1,000 drawn first words beside the naive decoder's."""
    rival, example = model("max"), examples()[3]  # whose first word is the clearest
    torch.manual_seed(0)
    (texts,) = generate(rival, [example], MonteCarloDecoding(do_sample=True, num_return_sequences=1000))
    drawn = torch.bincount(torch.tensor([text.tokens[0] for text in texts]), minlength=len(rival.backbone.tokenizer))
    probabilities = distribution(rival, example, []).exp()
    assert (drawn / 1000 - probabilities).abs().max() < 4 * (0.25 / 1000) ** 0.5
    assert int(probabilities.argmax()) == greedy(rival, example)[0][0]
    assert len({text.tokens for text in texts}) > 200
