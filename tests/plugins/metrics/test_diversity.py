"""Diversity of texts: words, pairs, whole texts, and BLEU of each against all others."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit.java import pairs
from mmgen_metrics import Diversity
from pycocoevalcap.bleu.bleu_scorer import BleuScorer


def diversity(*texts):
    return Diversity().build().score(*pairs(*[(text,) for text in texts])).values


def test_diversity_counts_words_pairs_and_texts():
    values = diversity("What is it?", "what is it", "Who is she?")
    assert values["distinct-1"] == pytest.approx(100 * 5 / 9)
    assert values["distinct-2"] == pytest.approx(100 * 4 / 6)
    assert values["unique"] == pytest.approx(100 * 2 / 3)
    assert values["commonest"] == pytest.approx(100 * 2 / 3)
    whole = dict.fromkeys(["distinct-1", "distinct-2", "unique", "commonest"], 100)
    assert diversity("a dog") == {**whole, "self-BLEU": None}
    assert diversity() == dict.fromkeys([*whole, "self-BLEU"])


@pytest.mark.slow
@given(st.lists(st.lists(st.sampled_from("abcd"), max_size=7), min_size=2, max_size=6))
def test_self_bleu_is_bleu_against_all_others(texts):
    lines = [" ".join(text) for text in texts]
    scorer = BleuScorer(n=4)
    for i, line in enumerate(lines):
        scorer += (line, lines[:i] + lines[i + 1 :])
    _, scores = scorer.compute_score(option="closest", verbose=0)
    generations, examples = pairs(*[(line,) for line in lines])
    assert Diversity().build().score(generations, examples).values["self-BLEU"] == pytest.approx(
        100 * sum(scores[3]) / len(lines)
    )
