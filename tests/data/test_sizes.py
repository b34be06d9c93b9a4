"""Sizes of examples: the alternatives that are measured are those that the collator draws; batches of like lengths."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kit import toys
from kit.lengths import Lengths

from mmgen.data.collate import Collator, by_length
from mmgen.data.seeds import RngKey, resolve
from mmgen.data.sizes import Sizes
from mmgen.examples import All, Example

KEY = RngKey(3, "both")


def lengths():
    """Of an example's texts, in thirds of a slot."""
    return Lengths("caption", "title", "image", characters=3)


values = st.text("a", max_size=9)
inputs = st.dictionaries(
    st.sampled_from(["caption", "title", "image", "unread"]),
    values | st.lists(values, max_size=70).map(tuple) | st.lists(values).map(tuple).map(All),
)


@pytest.mark.slow
@given(st.lists(st.tuples(inputs, st.lists(values, max_size=3).map(tuple)), min_size=1, max_size=9))
def test_slots_of_an_epoch_are_those_of_the_alternatives_that_the_collator_draws(contents):
    data = [Example(f"é{number}", *content) for number, content in enumerate(contents)]
    sizes = Sizes(data, lengths())
    assert sizes.pairs.tolist() == [len(example.targets) for example in data]
    for epoch in range(3):
        for example, slots in zip(data, sizes.slots(KEY, epoch).tolist(), strict=True):
            row = KEY.resolve(example, epoch)
            texts = [text for field in ("caption", "title", "image") for text in row.shown(field)]
            assert abs(sum(map(len, [*texts, *example.targets])) / 3 - slots) < 1e-3


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
