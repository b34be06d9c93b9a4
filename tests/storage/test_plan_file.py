"""The plan of a step in a file: equal to the plan that is made, and used only for the same sizes and options."""

from dataclasses import replace

import pytest
from kit import toys

from mmgen.data.collate import Collator
from mmgen.data.example_sizes import Measures
from mmgen.data.plan import Plan, PlanOptions
from mmgen.data.sources import DataStream, Source
from mmgen.storage import plan_file
from mmgen.storage.plan_file import make_plan
from mmgen.tensors import Example

OPTIONS = PlanOptions(7, "s", None, batch_size=12, micro_batch_size=4, length_bucket=4, updates=20)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(plan_file, "WORTH_KEEPING", 10)


def make_streams(count=60, share=1.0):
    """Two sources with sizes; one has alternatives."""
    collate = Collator(toys.model(), ["caption"])
    several = [Example(f"b{n}", {"caption": ("a ball", f"the ball is {'red ' * (n % 4)}")}, ("?",)) for n in range(30)]
    sources = [(toys.examples(count), share), (several, 0.5)]
    return [
        DataStream(Source(examples, share=part, measures=Measures.of(examples, collate)), collate)
        for examples, part in sources
    ]


def refuse(*arguments):
    raise AssertionError("made again")


def test_the_plan_of_the_file_is_the_plan_that_was_made(tmp_path, monkeypatch):
    streams = make_streams()
    created = make_plan(tmp_path, streams, OPTIONS, writes=True)
    assert created == Plan.make(streams, OPTIONS) and created.cut and len(created.updates.micro_ends) > 20
    monkeypatch.setattr(Plan, "make", refuse)
    read = make_plan(tmp_path, make_streams(), OPTIONS, writes=True)
    assert read == created and read.updates[3] == created.updates[3] and read.place == created.place


@pytest.mark.parametrize(
    ("streams", "options"),
    [(make_streams(61), OPTIONS), (make_streams(share=2.0), OPTIONS), (make_streams(), replace(OPTIONS, seed=8))],
    ids=["examples", "share", "options"],
)
def test_another_plan_is_made_and_replaces_the_file(tmp_path, streams, options, monkeypatch):
    first = make_plan(tmp_path, make_streams(), OPTIONS, writes=True)
    second = make_plan(tmp_path, streams, options, writes=True)
    assert second == Plan.make(streams, options) != first
    monkeypatch.setattr(Plan, "make", refuse)
    assert make_plan(tmp_path, streams, options, writes=True) == second


def test_small_plans_other_processes_and_unmeasured_examples_write_nothing(tmp_path, monkeypatch):
    streams = make_streams()
    make_plan(tmp_path, streams, OPTIONS, writes=False)
    unmeasured = [DataStream(replace(stream.source, measures=None), stream.collate) for stream in streams]
    assert make_plan(tmp_path, unmeasured, OPTIONS, writes=True) == Plan.make(streams, OPTIONS)
    monkeypatch.setattr(plan_file, "WORTH_KEEPING", 10_000)
    make_plan(tmp_path, streams, OPTIONS, writes=True)
    assert not list(tmp_path.iterdir())
