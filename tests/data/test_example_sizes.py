"""Measures of examples: equal to measuring each example, and small."""

import random

import pytest
from kit import toys

from mmgen.data.collate import Collator
from mmgen.data.example_sizes import MOST_COMBINATIONS, Measures
from mmgen.data.plan import Plan, PlanOptions
from mmgen.data.seeds import RngKey
from mmgen.data.sources import DataStream, Source
from mmgen.tensors import Example

PLACE = RngKey(3, "both")


class Lengths(Collator):
    """Rows with the length of an example's texts, in thirds of a slot."""

    def __init__(self):
        self.readers, self.targets = {}, {}

    def pairs(self, example):
        return len(example.targets)

    def tails(self, examples):
        return [sum(map(len, example.targets)) / 3 for example in examples]

    def prefix(self, example):
        assert not any(isinstance(value, tuple) for value in example.inputs.values())
        return sum(map(len, example.inputs.values())) / 3


def examples(count, most=4, seed=0):
    """Examples, most of which have alternatives in one or two inputs."""
    draw = random.Random(seed)
    texts = [tuple("a" * draw.randrange(9) for _ in range(draw.randrange(most + 1))) for _ in range(2 * count)]
    inputs = [
        {"image": "key", "caption": first, "title": second or "one"}
        for first, second in zip(texts[::2], texts[1::2], strict=True)
    ]
    return [Example(f"é{number}", values, ("what?",) * (number % 3 + 1)) for number, values in enumerate(inputs)]


@pytest.mark.parametrize("most", [0, 4])
def test_slots_of_an_epoch_are_those_of_the_examples_with_their_alternatives_drawn(most):
    collate, data = Lengths(), examples(50, most)
    measures = Measures.of(data, collate)
    assert list(measures.pairs) == [len(example.targets) for example in data]
    for epoch in range(3):
        expected = [
            collate.prefix(PLACE.resolve(example, epoch)) + tail
            for example, tail in zip(data, collate.tails(data), strict=True)
        ]
        assert list(measures.slots_in(epoch, PLACE)) == expected


def test_examples_without_alternatives_need_twelve_bytes_each():
    data = [Example(str(number), {"caption": "a red ball"}, ("what?",)) for number in range(100)]
    measures = Measures.of(data, Lengths())
    columns = (measures.pairs, measures.slots, measures.starts, measures.shapes, measures.ends)
    assert sum(column.itemsize * len(column) for column in columns) == 1200 and not measures.ids


def plan(source, **changes):
    options = {"seed": 0, "step": "s", "epochs": 3, "batch_size": 12, "micro_batch_size": 4, "length_bucket": 4}
    return Plan.make([DataStream(source, Lengths())], PlanOptions(**options, **changes))


def test_more_combinations_than_are_measured_are_drawn_every_epoch():
    wide = Example("wide", {"caption": ("a",) * 9, "title": tuple("b" * n for n in range(9))}, ("what?",))
    data = [*examples(30), wide]
    assert MOST_COMBINATIONS < 9 * 9 and not Measures.of(data, Lengths()).complete
    assert plan(Source(data)) == plan(Source(data, measures=Measures.of(data, Lengths())))


def test_a_plan_of_measured_examples_makes_none_and_needs_few_bytes():
    data = examples(2000)
    measured = plan(Source([None] * len(data), measures=Measures.of(data, Lengths())))
    assert measured == plan(Source(data))
    updates = measured.updates
    columns = (updates.indices, updates.epochs, updates.sources, updates.micro_ends, updates.ends, updates.pairs)
    assert sum(column.itemsize * len(column) for column in columns) < 20 * len(updates.indices)


def test_rows_of_a_model_are_measured_as_evaluation_measures_them():
    collate = Collator(toys.model(), ["caption"])
    data = [collate.place.resolve(example, None) for example in toys.examples(20)]
    assert list(Measures.of(data, collate).slots) == collate.slots(data)
