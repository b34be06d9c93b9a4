"""Plans: functions of (seed, step, epoch, update); every example once an epoch, updates of equal pairs, like lengths
together."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from kit import toys
from kit.lengths import Lengths

from mmgen.data.collate import Collator
from mmgen.data.plan import ONE_MICRO_BATCH, Plan
from mmgen.data.seeds import RngKey, resolve
from mmgen.data.sizes import Sizes
from mmgen.examples import Example
from mmgen.recipe.training import Training


def plan(*sources, shares=None, seed=0, step="s", **changes):
    training = Training(**{"epochs": 2, "batch_size": 8, "length_bucket": 1, **changes})
    sizes = [Sizes(source, Lengths("caption")) for source in sources]
    return Plan(sizes, RngKey(seed, step), training, shares or [1.0] * len(sources))


def visits(plan, update, micro_batch_size=3):
    """(source, pass, example) of an update, micro-batch by micro-batch."""
    return [
        [(micro.source, *pair) for pair in zip(micro.passes.tolist(), micro.indices.tolist(), strict=True)]
        for micro in plan.update(update, micro_batch_size)
    ]


def flat(plan, first=0, end=None, micro_batch_size=3):
    """The visits of updates, update by update."""
    numbers = range(first, len(plan) if end is None else end)
    return [sorted(sum(visits(plan, number, micro_batch_size), [])) for number in numbers]


@st.composite
def sources(draw, least=1):
    """Examples with up to 9 targets, at least one of them in all, of any length."""
    counts = draw(st.lists(st.integers(0, 9), min_size=least, max_size=60).filter(any))
    letter = draw(st.sampled_from("ab"))
    return [
        Example(f"{letter}{number}", {"caption": "w" * draw(st.integers(1, 60))}, ("q",) * count)
        for number, count in enumerate(counts)
    ]


SHAPES = {
    "batch_size": st.integers(1, 40),
    "length_bucket": st.integers(1, 5),
    "seed": st.integers(0, 3),
}


@given(sources(), st.integers(1, 40), st.fixed_dictionaries(SHAPES))
def test_every_example_is_visited_once_an_epoch_in_updates_of_equal_pairs(examples, micro_batch_size, shape):
    new_plan = plan(examples, **shape)
    count, pairs = new_plan.updates_per_epoch, [len(example.targets) for example in examples]
    assert count == min(len(examples), math.ceil(sum(pairs) / shape["batch_size"])) and len(new_plan) == 2 * count
    for epoch in range(2):
        updates = flat(new_plan, epoch * count, (epoch + 1) * count, micro_batch_size)
        assert sorted(sum(updates, [])) == [(0, epoch, number) for number in range(len(examples))]
        assert all(updates)
        sums = [sum(pairs[number] for *_, number in update) for update in updates]
        if shape["length_bucket"] == 1 and count <= sum(map(bool, pairs)) // 9:
            assert all(abs(total - sum(pairs) / count) < max(pairs) for total in sums)


@given(sources(), st.integers(1, 40), st.fixed_dictionaries(SHAPES))
def test_a_plan_is_a_function_of_its_place(examples, micro_batch_size, shape):
    """However it is walked through."""
    first, second = plan(examples, **shape), plan(examples, **shape)
    forwards = [visits(first, number, micro_batch_size) for number in range(len(first))]
    backwards = [visits(second, number, micro_batch_size) for number in reversed(range(len(second)))]
    assert forwards == backwards[::-1]


@given(sources(), st.integers(1, 9), st.fixed_dictionaries(SHAPES))
def test_micro_batches_end_once_their_pairs_are_reached_and_have_their_updates_examples(examples, size, shape):
    new_plan, pairs = plan(examples, **shape), [len(example.targets) for example in examples]
    for number in range(len(new_plan)):
        micro_batches = visits(new_plan, number, size)
        assert sorted(sum(micro_batches, [])) == sorted(sum(visits(new_plan, number, ONE_MICRO_BATCH), []))
        assert len(visits(new_plan, number, ONE_MICRO_BATCH)) == 1
        if size < shape["batch_size"]:
            assert all(sum(pairs[index] for *_, index in micro[:-1]) < size for micro in micro_batches)
        lengths = [len(examples[i].inputs["caption"]) + pairs[i] for *_, i in sum(micro_batches, [])]
        assert lengths == sorted(lengths)


@pytest.mark.slow
@given(st.data(), st.integers(1, 30), st.fixed_dictionaries(SHAPES), st.sampled_from([(1, 1), (2, 1), (1, 5)]))
def test_sources_have_their_shares_of_every_epoch_and_the_others_go_round(data, micro_batch_size, shape, shares):
    """An example of the other source is visited once a pass; the passes follow each other over epochs."""
    examples = [data.draw(sources()), data.draw(sources())]
    new_plan, pairs = plan(*examples, shares=shares, **shape), [[len(e.targets) for e in some] for some in examples]
    count = new_plan.updates_per_epoch
    order = [visit for update in flat(new_plan, micro_batch_size=micro_batch_size) for visit in update]
    assert sorted(visit for visit in order if not visit[0]) == [
        (0, epoch, number) for epoch in range(2) for number in range(len(examples[0]))
    ]
    repeated = Counter(visit[1:] for visit in order if visit[0])
    assert set(repeated.values()) <= {1}
    complete = max((number for number, _ in repeated), default=0)
    assert all((number, index) in repeated for number in range(complete) for index in range(len(examples[1])))
    required = max(1, round(sum(pairs[0]) * shares[1] / shares[0]))
    for epoch in range(2):
        visited = [v for update in flat(new_plan, epoch * count, (epoch + 1) * count) for v in update if v[0]]
        assert abs(sum(pairs[1][index] for *_, index in visited) - required) < 2 * max(pairs[1])
    sizes = [
        len({source for source, *_ in micro}) for number in range(len(new_plan)) for micro in visits(new_plan, number)
    ]
    assert set(sizes) == {1}


def singles(name, count):
    return [Example(f"{name}{i}", {"caption": "w" * (1 + i % 7)}, ("q",)) for i in range(count)]


def test_one_more_source_changes_nothing_of_the_first():
    examples = toys.examples(60)
    alone, both = plan(examples, length_bucket=3), plan(examples, singles("b", 9), batch_size=16, length_bucket=3)
    assert [[visit for visit in update if not visit[0]] for update in flat(both)] == flat(alone)


def test_the_order_depends_on_seed_step_and_epoch():
    examples = toys.examples(30)
    first = flat(plan(examples))
    assert first == flat(plan(examples)) != flat(plan(examples, seed=1)) and first != flat(plan(examples, step="t"))
    epochs = [[[number for *_, number in update] for update in first[half]] for half in (slice(0, 10), slice(10, 20))]
    assert epochs[0] != epochs[1]


def test_buckets_redistribute_by_length():
    examples = toys.examples(150)
    plain, bucketed = (plan(examples, epochs=3, batch_size=16, length_bucket=bucket) for bucket in (1, 4))
    sizes = Sizes(examples, Lengths("caption"))

    def padding(new_plan):
        rows = [[sizes.slots(new_plan.key, epoch)[index] for _, epoch, index in update] for update in flat(new_plan)]
        return 1 - sum(map(sum, rows)) / sum(len(row) * max(row) for row in rows)

    assert padding(bucketed) < 0.5 * padding(plain)
    counts = [len(update) for update in flat(bucketed)]
    assert counts != sorted(counts) and counts != sorted(counts, reverse=True), "in an order that is drawn"
    count = bucketed.updates_per_epoch
    epochs = [
        {frozenset(i for *_, i in update) for update in flat(bucketed, n * count, n * count + count)} for n in (0, 1)
    ]
    assert len(epochs[0] & epochs[1]) < 3, "every epoch redistributes"


def test_rows_are_padded_once_at_their_end_and_the_loss_is_the_same():
    model, examples = toys.model(), toys.examples(8)
    batch = Collator(model, ["caption"])([resolve(example) for example in examples])
    prefix = model.prefix(batch)
    apart = prefix.slots.followed_by(model.behind(prefix, batch.tail))
    rows, labels = model.rows(batch, batch.tail)
    real = rows.layout.real
    assert (
        real.sum() == apart.layout.real.sum()
        and real.shape[1] == apart.layout.real.sum(1).max() < apart.layout.real.shape[1]
    )
    assert torch.equal(real, torch.arange(real.shape[1]) < real.sum(1, keepdim=True))
    with torch.no_grad():
        separate_states = model.backbone.encode(apart).last[:, prefix.slots.positions.shape[1] :][
            batch.tail.labels != -100
        ]
        torch.testing.assert_close(model.backbone.encode(rows).last[labels != -100], separate_states, atol=1e-5, rtol=0)
    assert torch.equal(labels[labels != -100], batch.tail.labels[batch.tail.labels != -100])
