"""Batches of requests that wait: who shares one, who is first, and that a failure stays alone."""

import asyncio
import threading

import pytest
from kit import served
from mmgen_serve.app import Service
from mmgen_serve.batcher import Batcher
from mmgen_serve.requests import Ask

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
    assert len(batcher.unanswered) == 6
    held.go.set()
    assert [result.result(SECONDS) for result in results] == ["0 first", "1 a", "2 b", "1 c", "2 d", "2 e"]
    assert held.batches == [["first"], ["a", "c"], ["b", "d"], ["e"]] and not batcher.unanswered


def test_a_batch_that_fails_stops_no_other_and_an_item_that_nobody_waits_for_costs_nothing():
    held = Held()
    batcher = Batcher(held, most=9)
    first = held.begin(batcher)
    broken, gone, a, b = (batcher.submit(item, kind) for item, kind in (("broken", 1), ("gone", 2), ("a", 2), ("b", 2)))
    assert gone.cancel()
    held.go.set()
    assert [waiting.result(SECONDS) for waiting in (first, a, b)] == ["0 first", "2 a", "2 b"]
    assert isinstance(broken.exception(SECONDS), ValueError) and held.batches == [["first"], ["a", "b"]]


@pytest.mark.slow
def test_requests_that_sample_share_a_batch_and_have_the_answers_of_their_seeds(predictor, monkeypatch):
    sizes, go, finish = [], threading.Event(), predictor.finish

    def held(prepared, options):
        assert go.wait(SECONDS)
        sizes.append(len(prepared))
        return finish(prepared, options)

    monkeypatch.setattr(predictor, "finish", held)
    service, sampling = Service(predictor), {"do_sample": True}

    async def ask(seed):
        body = Ask(inputs={"image": served.encoded(), "caption": "a dog"}, decoding=sampling, seed=seed)
        return (await service.answer(body))[1]

    async def ask_all():
        waiting = [asyncio.create_task(ask(seed)) for seed in range(8)]
        while len(service.writing.unanswered) < 8:
            await asyncio.sleep(0.01)
        go.set()
        return await asyncio.gather(*waiting)

    answers = asyncio.run(ask_all())
    assert [answer.seed for answer in answers] == [*range(8)] and len({answer.value for answer in answers}) > 1
    assert sum(sizes) == 8 and len(sizes) <= 2  # those that waited with the first, and the rest
    query = {"image": served.picture(), "caption": "a dog"}
    alone = [predictor.ask(query, options=sampling, seed=seed) for seed in range(8)]
    assert [answer.value for answer in answers] == [answer.value for answer in alone]
