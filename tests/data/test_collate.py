"""Batches of examples, and the sizes of their rows."""

import itertools
import random

import pytest
from kit import toys

from mmgen.data.collate import Collator, by_length
from mmgen.data.seeds import resolve
from mmgen.errors import DataError
from mmgen.examples import Example


def test_evaluation_takes_every_example_once():
    examples = toys.examples(25)
    random.Random(0).shuffle(examples)
    slots = Collator(toys.model(), ["caption"], objectives=()).slots([resolve(example) for example in examples])
    batches = list(by_length(slots, 4))
    assert sorted(index for indices in batches for index in indices) == list(range(25))
    ranges = [(min(slots[i] for i in indices), max(slots[i] for i in indices)) for indices in batches]
    assert all(longest <= shortest for (_, longest), (shortest, _) in itertools.pairwise(ranges)), (
        "rows of like length together"
    )


def test_an_example_without_a_required_input_is_named():
    with pytest.raises(DataError, match="example 'e' has no caption; its inputs are: image"):
        Collator(toys.model(), ["caption"])([Example("e", {"image": "k"}, ("q",))])
