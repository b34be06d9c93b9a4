"""Batches of requests that wait: who shares one, who is first, and that a failure stays alone."""

import threading

import pytest
from kit import served
from mmgen_serve.app import Service
from mmgen_serve.batcher import Batcher

from mmgen.decoding import Decoding
from mmgen.inference.query import Query

SECONDS = 300.0  # until a test that hangs fails


class Held:
    """Work that waits for `go`, and notes its batches; the item "broken" fails."""

    def __init__(self):
        self.go, self.begun, self.batches = threading.Event(), threading.Event(), []

    def __call__(self, kind, items):
        self.begun.set()
        assert self.go.wait(SECONDS)
        if "broken" in items:
            raise ValueError("broken")
        self.batches.append(items)
        return [f"{kind} {item}" for item in items]

    def begin(self, batcher):
        """Let the work begin with a first item, so that the next ones wait."""
        first = batcher.submit("first", 0)
        assert self.begun.wait(SECONDS)
        return first


def test_items_of_one_kind_are_answered_together_the_oldest_first():
    held = Held()
    batcher = Batcher(held, most=2)
    results = [
        held.begin(batcher),
        *(batcher.submit(item, kind) for item, kind in zip("abcde", (1, 2, 1, 2, 2), strict=True)),
    ]
    assert batcher.unanswered == 6
    held.go.set()
    assert [result.result(SECONDS) for result in results] == ["0 first", "1 a", "2 b", "1 c", "2 d", "2 e"]
    assert held.batches == [["first"], ["a", "c"], ["b", "d"], ["e"]] and batcher.unanswered == 0


def test_an_item_fails_alone_and_one_that_nobody_waits_for_costs_nothing():
    held = Held()
    batcher = Batcher(held, most=9)
    first = held.begin(batcher)
    a, broken, gone, b = (batcher.submit(item) for item in ("a", "broken", "gone", "b"))
    assert gone.cancel()
    held.go.set()
    assert [one.result(SECONDS) for one in (first, a, b)] == ["0 first", "None a", "None b"]
    assert isinstance(broken.exception(SECONDS), ValueError) and held.batches == [["first"], ["a"], ["b"]]


def test_a_batch_waits_only_for_what_is_coming():
    coming = True
    batches = []
    batcher = Batcher(lambda _, items: batches.append(items) or items, 2, window=SECONDS, coming=lambda: coming)
    first = batcher.submit("a")
    assert batcher.submit("b").result(SECONDS) == "b" and first.done() and batches == [["a", "b"]]
    coming = False
    assert batcher.submit("c").result(SECONDS) == "c"


@pytest.mark.slow
@pytest.mark.parametrize("options", [Decoding(), Decoding(num_beams=3, num_return_sequences=2)])
def test_company_changes_no_answer(predictor, options):
    """Texts and scores alone, and among 12 others with captions of other lengths."""
    queries = [
        Query(f"{color} {words}", {"image": served.picture(color), "caption": words})
        for color in ("red", "green", "blue", "white", "yellow", "gray")
        for words in ("a dog", "two blue cats sleep on the grass")
    ]
    service = Service(predictor, window=1.0)
    alone = [predictor.finish(predictor.prepare([query]), options)[0] for query in queries]
    prepared = [service.reading.submit(query) for query in queries]
    replies = [service.writing.submit(one.result(SECONDS), (options, None)) for one in prepared]
    for reply, expected in zip(replies, alone, strict=True):
        answer = reply.result(SECONDS)
        assert [text.text for text in answer.texts] == [text.text for text in expected.texts]
        assert answer.score == pytest.approx(expected.score, abs=1e-5)
