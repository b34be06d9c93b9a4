"""Diversity: how much the generated texts differ from each other, regardless of references."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import fmean

from pycocoevalcap.bleu.bleu_scorer import BleuScorer, cook_test, precook

from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric

from .ptb import tokenise


class DiversityMetric(Metric):
    """Diversity in percent over the texts of all examples, with words from our own tokeniser:

    distinct-1, distinct-2  share of different words (pairs of words) among all words (Li et al., 2016)
    unique                  share of different texts among all texts
    commonest               share of the most common text among all texts; lower is more diverse
    self-BLEU               mean BLEU-4 of each text against all others (Zhu et al., 2018); lower is more diverse
    """

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        texts = [tuple(tokenise(generation.text)) for generation in generations]
        scores = self_bleu(texts)
        values = {
            "distinct-1": _distinct([word for text in texts for word in text]),
            "distinct-2": _distinct([pair for text in texts for pair in zip(text, text[1:], strict=False)]),
            "unique": _distinct(texts),
            "commonest": 100 * max(Counter(texts).values()) / len(texts) if texts else None,
            "self-BLEU": fmean(scores) if scores else None,
        }
        return Scores(values)


def _distinct(items: list) -> float | None:
    return 100 * len(set(items)) / len(items) if items else None


def self_bleu(texts: Sequence[Sequence[str]]) -> list[float]:
    """BLEU-4 in percent of each text with all others as its references; empty for fewer than two texts.

    The two highest counts of every n-gram are stored, so that "all others" is one look-up and the time is linear in the
    number of words.
    """
    if len(texts) < 2:
        return []
    lines = [" ".join(text) for text in texts]
    highest: dict[
        tuple, tuple[int, int, int]
    ] = {}  # n-gram -> highest count, the text that has it, second highest count
    for i, line in enumerate(lines):
        for gram, count in precook(line)[1].items():
            best, owner, second = highest.get(gram, (0, -1, 0))
            highest[gram] = (count, i, best) if count > best else (best, owner, max(second, count))
    lengths = Counter(map(len, texts))
    scorer = BleuScorer(n=4)
    for i, line in enumerate(lines):
        references = {}
        for gram in precook(line)[1]:
            best, owner, second = highest[gram]
            references[gram] = second if owner == i else best
        other_lengths = [length for length, count in lengths.items() if count > (length == len(texts[i]))]
        scorer.crefs.append((other_lengths, references))
        scorer.ctest.append(cook_test(line, (other_lengths, references)))
    _, scores = scorer.compute_score(option="closest", verbose=0)
    return [100 * score for score in scores[3]]
