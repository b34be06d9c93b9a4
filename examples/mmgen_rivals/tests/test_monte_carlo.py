"""Monte Carlo dropout in writing: the mean of the words' probabilities over drawn networks."""

import pytest
import torch
from mmgen.evaluation.answers import generate
from mmgen.testing import GeneratorSuite

from mmgen_rivals import Lstm, MonteCarlo, MonteCarloDecoding
from written_out import examples, greedy, mean_distribution, model


class TestMonteCarlo(GeneratorSuite):
    def config(self):
        return MonteCarlo(max_tokens=10)

    def decodings(self):
        return MonteCarloDecoding(passes=3), MonteCarloDecoding(passes=2, num_beams=3, num_return_sequences=2)


class TestBehindTheLstm(TestMonteCarlo):
    def backbone_config(self):
        return Lstm(hidden_size=32, vocab_size=200, dropout=0.0)

    def model(self, caption=None):
        """With weights that are not small, so that no two words have nearly the same probability."""
        model = super().model(caption)
        for parameter in model.parameters():
            parameter.data.mul_(4)
        return model


@torch.no_grad()
@pytest.mark.parametrize("passes", [1, 5])
def test_passes_write_by_the_mean_of_the_probabilities(passes):
    rival = model("mc_sbn")
    options = MonteCarloDecoding(passes=passes)
    for example, (text,) in zip(examples(), generate(rival, examples(), options), strict=True):
        tokens, score = greedy(rival, example, passes)
        assert text.tokens == tokens and text.score == pytest.approx(score, abs=1e-5)
        ((alone,),) = generate(rival, [example], options)
        assert alone.tokens == tokens and alone.score == pytest.approx(score, abs=1e-5)


@torch.no_grad()
def test_beams_of_passes_have_the_scores_of_the_mean():
    rival, example = model("mc_sbn"), examples()[1]
    (texts,) = generate(rival, [example], MonteCarloDecoding(passes=3, num_beams=4, num_return_sequences=3))
    assert len({text.tokens for text in texts}) == 3
    for text in texts:
        logps = [mean_distribution(rival, example, text.tokens[:t], 3)[token] for t, token in enumerate(text.tokens)]
        assert text.score == pytest.approx(float(torch.stack(logps).mean()), abs=1e-5)
