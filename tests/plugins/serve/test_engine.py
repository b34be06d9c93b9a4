"""The engine: batches, order, failures, limits and its end, with a model that can be held; and with a real one, that
company changes no answer."""

import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from types import SimpleNamespace

import pytest
import torch
from kit import served
from mmgen_serve.engine import Engine, Job, Reply
from mmgen_serve.limits import Limits
from mmgen_serve.refusals import Refusal, refusal_of

from mmgen.decoding import Decoding
from mmgen.errors import PluginError, UnavailableError
from mmgen.examples import Generation
from mmgen.inference.answers import Answer
from mmgen.inference.query import Query
from mmgen.inference.query_reader import Prepared

SECONDS = 300.0  # until a test that hangs fails


@dataclass
class Held:
    """A predictor whose model waits for `go`, and notes its batches."""

    go: threading.Event = field(default_factory=threading.Event)
    batches: list = field(default_factory=list)
    model: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(device=torch.device("cpu"), embedders={}))
    names: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(inputs={}))
    began: threading.Event = field(default_factory=threading.Event)
    read: threading.Event = field(default_factory=threading.Event)
    together: list = field(default_factory=list)

    def retry(self):
        return None

    def prepare(self, queries):
        ids = [query.id for query in queries]
        self.together.append(ids)
        if "slow" in ids:
            assert self.read.wait(SECONDS)
        if "unavailable" in ids:
            raise UnavailableError("no extractor")
        readable = SimpleNamespace(rows=[SimpleNamespace(example=None)])
        return [
            Prepared(query, Answer(query.id, error="cannot be read"))
            if query.id == "unreadable"
            else Prepared(query, Answer(query.id), readable)
            for query in queries
        ]

    def finish(self, prepared, options, retry, seed):
        self.began.set()
        assert self.go.wait(SECONDS)
        ids = [query.answer.id for query in prepared]
        self.batches.append(ids)
        if "broken" in ids:
            raise PluginError("broken")
        if "dies" in ids:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if "odd" in ids:
            raise IndexError("secret")
        return [Answer(id_, (Generation(id_, f"about {id_}", (1,), -1.0),)) for id_ in ids]


@pytest.fixture
def held():
    predictor = Held()
    yield predictor
    predictor.go.set()


def started(predictor, window: float = 0.0, readers: int = 1, **limits) -> Engine:
    engine = Engine(predictor, Limits(**limits), window, readers=readers)
    engine.start()
    return engine


def submit(engine: Engine, name: str, options=None, seed=None) -> Future[Reply]:
    return engine.submit(Job(Query(name), options, seed))


def text(reply: Future[Reply]) -> str:
    return reply.result(SECONDS).answer.value


def hold_one(engine: Engine, held: Held) -> Future[Reply]:
    """Let the model begin with a first job, so that the next ones wait."""
    first = submit(engine, "first")
    assert held.began.wait(SECONDS)
    return first


def until_read(engine: Engine, count: int) -> None:
    """Wait until so many jobs wait for the model."""
    with engine._change:
        assert engine._change.wait_for(lambda: len(engine._ready) == count, SECONDS)


def test_jobs_that_wait_are_answered_together_by_decoding_the_oldest_first(held):
    engine = started(held)
    replies = [hold_one(engine, held)]
    beams, greedy = Decoding(num_beams=2), Decoding()
    for name, options in (("a", beams), ("b", greedy), ("c", beams), ("d", greedy), ("e", greedy)):
        replies.append(submit(engine, name, options))
    until_read(engine, 5)
    held.go.set()
    assert [text(reply) for reply in replies] == [f"about {name}" for name in ("first", "a", "b", "c", "d", "e")]
    assert held.batches == [["first"], ["a", "c"], ["b", "d", "e"]]
    engine.stop(SECONDS)


def test_a_job_that_samples_is_alone(held):
    engine = started(held)
    first = hold_one(engine, held)
    sampled = Decoding(do_sample=True)
    replies = [first, *(submit(engine, name, sampled, seed) for seed, name in enumerate("ab"))]
    until_read(engine, 2)
    held.go.set()
    assert [text(reply) for reply in replies] and held.batches == [["first"], ["a"], ["b"]]
    engine.stop(SECONDS)


def test_a_job_fails_alone(held):
    engine = started(held)
    replies = {"first": hold_one(engine, held)}
    for name in ("a", "unreadable", "broken", "odd", "unavailable", "b"):
        replies[name] = submit(engine, name)
    until_read(engine, 4)
    held.go.set()
    assert [text(replies[name]) for name in ("first", "a", "b")] == ["about first", "about a", "about b"]
    refused = {}
    for name in ("unreadable", "broken", "odd", "unavailable"):
        error = refusal_of(replies[name].exception(SECONDS))
        refused[name] = (error.status, error.message)
    assert refused == {
        "unreadable": (400, "cannot be read"),
        "broken": (500, "broken"),
        "odd": (500, "the service failed to answer this request; its log has the reason"),
        "unavailable": (501, "no extractor"),
    }
    assert engine.alive and engine.waiting == 0
    engine.stop(SECONDS)


def test_a_full_queue_refuses(held):
    engine = started(held, queue=2)
    replies = [hold_one(engine, held), submit(engine, "a")]
    with pytest.raises(Refusal) as error:
        submit(engine, "b")
    assert (error.value.status, error.value.headers) == (503, {"Retry-After": "1"})
    assert error.value.message == "2 requests are waiting already; try again in a second"
    held.go.set()
    assert [text(reply) for reply in replies] == ["about first", "about a"]
    assert text(submit(engine, "b")) == "about b"
    engine.stop(SECONDS)


def test_a_job_that_waited_too_long_fails(held):
    engine = started(held, queue_time=0.0)
    reply = submit(engine, "late")
    error = reply.exception(SECONDS)
    assert isinstance(error, Refusal) and error.message == "the request waited for 0 seconds; try again later"
    engine.stop(SECONDS)


def test_a_client_that_has_gone_costs_nothing(held):
    engine = started(held)
    first, gone, stays = hold_one(engine, held), submit(engine, "gone"), submit(engine, "stays")
    until_read(engine, 2)
    assert gone.cancel()
    held.go.set()
    assert text(first) and text(stays) and held.batches == [["first"], ["stays"]]
    engine.stop(SECONDS)


def test_a_second_reader_goes_on_and_the_oldest_is_first(held):
    engine = started(held, readers=2)
    first = hold_one(engine, held)
    slow = submit(engine, "slow")
    while ["slow"] not in held.together:
        time.sleep(0.001)
    rest = [submit(engine, name) for name in "ab"]
    until_read(engine, 2)
    held.read.set()
    until_read(engine, 3)
    held.go.set()
    assert [text(reply) for reply in (first, slow, *rest)] and held.batches == [["first"], ["slow", "a", "b"]]
    engine.stop(SECONDS)
    assert not any(thread.is_alive() for thread in engine._threads)


@pytest.mark.slow
@pytest.mark.parametrize("options", [Decoding(), Decoding(num_beams=3, num_return_sequences=2)])
def test_company_changes_no_answer(predictor, options):
    """Texts and scores alone, and among 12 others with captions of other lengths."""
    colors = ["red", "green", "blue", "white", "yellow", "gray"]
    queries = [
        Query(f"{color} {words}", {"image": served.picture(color), "caption": words})
        for color in colors
        for words in ("a dog", "two blue cats sleep on the grass")
    ]
    alone = [predictor.finish(predictor.prepare([query]), options)[0] for query in queries]
    engine = started(predictor, window=1.0)
    replies = [engine.submit(Job(query, options)) for query in queries]
    for reply, expected in zip(replies, alone, strict=True):
        answer = reply.result(60).answer
        assert [text.text for text in answer.texts] == [text.text for text in expected.texts]
        assert answer.score == pytest.approx(expected.score, abs=1e-5)
    engine.stop(SECONDS)
