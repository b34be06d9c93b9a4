"""Diversity: how much the written texts differ from each other, whatever the references say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from pycocoevalcap.bleu.bleu_scorer import BleuScorer, cook_test, precook

from mmgen.parts import Metric
from mmgen.tensors import Example, Generation, Scores

from .ptb import tokenise


class DiversityMetric(Metric):
    """In percent, over the texts of all examples; words are those of our own tokeniser:

    distinct-1, distinct-2  different words (pairs of words) of all that were written (Li et al., 2016)
    unique                  different texts of all that were written
    self-BLEU               mean BLEU-4 of each text against all others (Zhu et al., 2018); lower is more diverse
    """

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        texts = [tuple(tokenise(generation.text)) for generation in generations]
        each = self_bleu(texts)
        values = {
            "distinct-1": _distinct([word for text in texts for word in text]),
            "distinct-2": _distinct([pair for text in texts for pair in zip(text, text[1:], strict=False)]),
            "unique": _distinct(texts),
            "self-BLEU": fmean(each) if each else None,
        }
        return Scores(values, {"self-BLEU": each} if each else {})


def _distinct(things: list) -> float | None:
    return 100 * len(set(things)) / len(things) if things else None


def self_bleu(texts: Sequence[Sequence[str]]) -> list[float]:
    """BLEU-4 in percent of each text with all others as its references; nothing for fewer than two texts.

    Every n-gram's two highest counts are kept: "all others" is one look-up, and the time grows with the words only.
    """
    if len(texts) < 2:
        return []
    lines = [" ".join(text) for text in texts]
    highest: dict[tuple, tuple[int, int, int]] = {}  # n-gram -> its highest count, whose it is, the next highest
    for i, line in enumerate(lines):
        for gram, count in precook(line)[1].items():
            best, owner, second = highest.get(gram, (0, -1, 0))
            highest[gram] = (count, i, best) if count > best else (best, owner, max(second, count))
    lengths = Counter(map(len, texts))
    scorer = BleuScorer(n=4)
    for i, line in enumerate(lines):
        others = {}
        for gram in precook(line)[1]:
            best, owner, second = highest[gram]
            others[gram] = second if owner == i else best
        near = [length for length, count in lengths.items() if count > (length == len(texts[i]))]
        scorer.crefs.append((near, others))
        scorer.ctest.append(cook_test(line, (near, others)))
    _, each = scorer.compute_score(option="closest", verbose=0)
    return [100 * score for score in each[3]]
