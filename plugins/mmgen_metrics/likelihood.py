"""The metric of likelihood: perplexity of references."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mmgen.examples import Example, Likelihood, Scores
from mmgen.parts import Metric


class LikelihoodMetric(Metric):
    """Perplexity by token over all references of all examples."""

    def score(self, likelihoods: Sequence[Sequence[Likelihood]], examples: Sequence[Example]) -> Scores:
        sums = [
            [sum(text.log_probability for text in texts), sum(len(text.tokens) for text in texts)]
            for texts in likelihoods
        ]
        kinds = {text.kind for texts in likelihoods for text in texts} - {"exact"}
        values = {"perplexity": float(perplexity(np.sum(sums, 0)))}
        return Scores(values, {}, tuple(f"perplexity: {kind}" for kind in sorted(kinds)), {"perplexity": sums})


def perplexity(sums: np.ndarray) -> np.ndarray:
    """Of log-probabilities and numbers of tokens (..., 2) that are summed over texts."""
    return np.exp(-sums[..., 0] / sums[..., 1])
