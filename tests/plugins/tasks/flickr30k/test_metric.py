"""Recall of phrases' boxes."""

import pytest
from kit.judged import BOXES, FAR, PHRASES, Judges, predictions_of
from mmgen_tasks import PhraseRecall


class TestPhraseRecall(Judges):
    scored_examples = PHRASES

    def config(self):
        return PhraseRecall(by_phrase_type=True)

    def value(self, n, example):
        return [list(FAR)] * n + [list(BOXES[0])]


def test_recall_of_phrases():
    ranked = [[BOXES[0]], [FAR] * 5 + [BOXES[1]], [FAR] * 12 + [BOXES[2]]]
    scores = PhraseRecall(by_phrase_type=True).build().score(predictions_of(ranked, PHRASES), PHRASES)
    third = pytest.approx(100 / 3)
    assert scores.values == {
        "animals": 50,
        "people": 0,
        "R@1": third,
        "R@5": third,
        "R@10": pytest.approx(200 / 3),
        "upper bound": 100,
    }
    assert PhraseRecall().build().score(predictions_of([[FAR], [], [FAR]], PHRASES), PHRASES).values["upper bound"] == 0
    assert PhraseRecall().build().references(PHRASES).values == {"chance_R@1": pytest.approx(200 / 3)}
