"""Plans and loaders: functions of (seed, step, epoch, update), independent of workers and processes."""

import itertools
from collections import Counter

import pytest
import torch
from kit import toys

from mmgen.data.collate import Collator
from mmgen.data.loader import time_batches
from mmgen.data.plan import Plan, PlanOptions
from mmgen.data.seeds import draw_from, resolve, seed_from
from mmgen.data.sources import DataStream, Source
from mmgen.errors import DataError
from mmgen.tensors import Example


class Alike(Collator):
    """All rows have the same length."""

    def __init__(self):
        self.readers, self.targets = {}, {}

    def pairs(self, example):
        return len(example.targets)

    def tails(self, examples):
        return [1.0] * len(examples)


def plan(examples, lengths=None, **changes):
    return mixed([Source(examples)], lengths, **changes)


def mixed(sources, lengths=None, **changes):
    shape = {"seed": 0, "step": "s", "epochs": 2, "batch_size": 8, "micro_batch_size": 3, **changes}
    return Plan.make([DataStream(source, lengths or Alike()) for source in sources], PlanOptions(**shape))


def streams(model, examples):
    return [DataStream(Source(examples), Collator(model, ["caption"]))]


def samples(plan):
    return [[sample for micro in update for sample in micro] for update in plan.updates]


def test_every_example_is_visited_once_an_epoch():
    examples = toys.examples(30)
    new_plan = plan(examples)
    assert Counter((v.index, v.epoch) for update in samples(new_plan) for v in update) == Counter(
        {(i, e): 1 for i in range(30) for e in range(2)}
    )
    assert len(new_plan) == new_plan.epochs[-1]


def test_an_update_takes_examples_until_its_pairs_are_reached():
    examples = toys.examples(40)
    for update in samples(plan(examples))[:-1]:
        pairs = [len(examples[sample.index].targets) for sample in update]
        assert sum(pairs) - max(pairs) < 8


def test_the_order_depends_on_seed_step_and_epoch_only():
    examples = toys.examples(30)
    assert plan(examples) == plan(examples)
    assert plan(examples).updates != plan(examples, seed=1).updates
    assert plan(examples).updates != plan(examples, step="t").updates
    first, second = samples(plan(examples))[0], samples(plan(examples))[plan(examples).epochs[0]]
    assert [v.index for v in first] != [v.index for v in second]


def test_epochs_end_where_their_last_example_is_even_when_they_differ_in_length():
    examples = [Example(str(i), {}, ("q",) * (1 + i % 8)) for i in range(200)]
    new_plan = plan(examples, epochs=5, batch_size=16)
    assert len(set(b - a for a, b in zip((0, *new_plan.epochs), new_plan.epochs, strict=False))) > 1
    for epoch, (first, last) in enumerate(zip((0, *new_plan.epochs), new_plan.epochs, strict=False)):
        assert {sample.epoch for update in samples(new_plan)[first:last] for sample in update} == {epoch}
        assert new_plan.epoch(first) == epoch and epoch < new_plan.epoch(last - 1) < epoch + 1


@pytest.mark.parametrize("number", [1, 5, 11, 12, 13, 30])
def test_a_plan_of_updates_begins_like_one_of_epochs(number):
    """With several sources, the first one; the last epoch ends with the plan."""
    for sources in ([Source(toys.examples(30))], [Source(toys.examples(30)), Source(toys.examples(7, seed=1))]):
        epochs = mixed(sources, epochs=4, length_bucket=3)
        chosen = mixed(sources, epochs=None, updates=number, length_bucket=3)
        assert len(chosen) == number and chosen.epochs[-1] == number
        firsts = [[[m for m in p.updates[u] if not m[0].source] for u in range(number)] for p in (chosen, epochs)]
        assert firsts[0] == firsts[1] and {m[0].source for m in chosen.updates[number - 1]} == set(range(len(sources)))
        assert chosen.epochs[:-1] == epochs.epochs[: len(chosen.epochs) - 1]
        assert [chosen.epoch(u) for u in range(number)] == [epochs.epoch(u) for u in range(number)]


def test_which_caption_is_drawn_depends_on_the_visit_and_the_first_is_evaluated():
    example = Example("x", {"caption": ("one", "two", "three"), "image": "key"}, ("q",))
    new_plan = plan([example], epochs=30)
    drawn = [new_plan.place.resolve(example, update[0].epoch).inputs["caption"] for update in samples(new_plan)]
    assert set(drawn) == {"one", "two", "three"}
    assert resolve(example).inputs == {"caption": "one", "image": "key"}


def test_draws_on_the_processor_follow_from_the_place_and_note_nothing_for_gpus(monkeypatch):
    torch.manual_seed(seed_from(0, "step", 7, 1))
    expected = torch.rand(5)
    monkeypatch.setattr(torch.cuda, "manual_seed_all", None)  # it is not called
    draw_from(torch.device("cpu"), 0, "step", 7, 1)
    assert torch.equal(torch.rand(5), expected)


def test_an_empty_split_is_an_error():
    with pytest.raises(DataError, match="the split has no examples"):
        plan([])
    with pytest.raises(DataError, match="example 'e' has no target to train on"):
        Collator(toys.model(), ["caption"])([Example("e", {"caption": "a"})])


def test_examples_of_like_length_share_a_micro_batch_and_long_ones_are_fewer():
    """Complete rows count, prefix and questions; only the inputs that a step reads."""
    examples = [
        Example(str(i), {"caption": "w " * (60 if i % 2 else 5), "image": "key"}, ("a b c",) * 2) for i in range(16)
    ]
    sizes = {"epochs": 1, "batch_size": 32, "micro_batch_size": 8}

    def slots(*inputs):
        return Collator(toys.model(max_tokens=30), inputs)

    (update,) = plan(examples, **sizes, lengths=slots("caption")).updates
    assert [[sample.index % 2 for sample in micro] for micro in update] == [[0] * 4] * 2 + [[1] * 3, [1] * 3, [1] * 2]
    (unread,) = plan(examples, **sizes, lengths=slots()).updates
    assert [len(micro) for micro in unread] == [4] * 4


def test_buckets_redistribute_by_length_and_keep_every_example():
    examples = toys.examples(150)
    collator = Collator(toys.model(), ["caption"])
    plain, bucketed = (
        plan(examples, epochs=3, batch_size=16, micro_batch_size=16, length_bucket=length_bucket, lengths=collator)
        for length_bucket in (1, 4)
    )
    assert Counter((v.index, v.epoch) for update in samples(bucketed) for v in update) == Counter(
        {(i, e): 1 for i in range(150) for e in range(3)}
    )
    pairs = [sum(len(examples[v.index].targets) for v in update) for update in samples(bucketed)]
    assert sum(count < 16 for count in pairs) <= 3 and max(pairs) < 16 + 4, "whole updates, but for one an epoch"

    def padding(new_plan):
        rows = [
            collator.slots([new_plan.place.resolve(examples[v.index], v.epoch) for v in update])
            for update in samples(new_plan)
        ]
        return 1 - sum(map(sum, rows)) / sum(len(row) * max(row) for row in rows)

    assert padding(bucketed) < 0.5 * padding(plain)
    sizes = [len(update) for update in samples(bucketed)]
    assert sizes != sorted(sizes) and sizes != sorted(sizes, reverse=True), "in an order that is drawn"
    epochs = [
        {frozenset(v.index for v in update) for update in samples(bucketed)[first:last]}
        for first, last in itertools.pairwise([0, *bucketed.epochs])
    ]
    assert len(epochs[0] & epochs[1]) < 3, "every epoch redistributes"
    assert plan(examples, length_bucket=4, lengths=collator) == plan(examples, length_bucket=4, lengths=collator)


def test_rows_of_one_length_stay_as_they_are_drawn():
    """Not in the order of the data, where neighbours are often similar, or of one image."""
    examples = [Example(str(i), {"caption": "a b"}, ("c d",)) for i in range(640)]
    new_plan = plan(
        examples,
        epochs=1,
        batch_size=16,
        micro_batch_size=16,
        length_bucket=10,
        lengths=Collator(toys.model(), ["caption"]),
    )
    spread = [max(v.index for v in update) - min(v.index for v in update) for update in samples(new_plan)]
    assert min(spread) > 200


def test_buckets_keep_every_example_of_any_length():
    examples = [
        Example(str(i), {"caption": "a " * (i % 50)}, ("q",) * (60 if i % 25 == 0 else i % 3)) for i in range(200)
    ]
    new_plan = plan(examples, epochs=2, length_bucket=5, lengths=Collator(toys.model(), ["caption"]))
    assert Counter((v.index, v.epoch) for update in samples(new_plan) for v in update) == Counter(
        {(i, e): 1 for i in range(200) for e in range(2)}
    )
    assert all(samples(new_plan))


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
    assert rows.counts.tolist() == [int(real.sum()), real.numel()] == model(batch).slots.tolist()
    with torch.no_grad():
        separate_states = model.backbone.encode(apart).last[:, prefix.slots.positions.shape[1] :][
            batch.tail.labels != -100
        ]
        torch.testing.assert_close(model.backbone.encode(rows).last[labels != -100], separate_states, atol=1e-5, rtol=0)
    assert torch.equal(labels[labels != -100], batch.tail.labels[batch.tail.labels != -100])


def test_waiting_is_timed_and_changes_nothing():
    waits = []
    assert list(time_batches(iter("abc"), waits)) == list("abc")
    assert len(waits) == 3 and all(wait >= 0 for wait in waits)


def singles(name, count):
    return [Example(f"{name}{i}", {"caption": "w " * (1 + i % 7)}, ("q",)) for i in range(count)]


@pytest.mark.parametrize("length_bucket", [1, 3])
@pytest.mark.parametrize("micro_batch_size", [3, 16])
def test_sources_are_in_every_update_as_their_shares_say(length_bucket, micro_batch_size):
    """Two thirds and one third of 8 pairs are not whole numbers; over all updates the ratio is exact."""
    sources = [Source(singles("a", 50), share=2), Source(singles("b", 30), share=1)]
    lengths = Collator(toys.model(), ["caption"])
    new_plan = mixed(sources, lengths, epochs=3, length_bucket=length_bucket, micro_batch_size=micro_batch_size)
    assert all(len({sample.source for sample in micro}) == 1 for update in new_plan.updates for micro in update)
    counts = [Counter(sample.source for sample in update) for update in samples(new_plan)]
    assert Counter(count[0] for count in counts) == {6: 24, 2: 3}  # one update an epoch has what is left of the first
    assert all(abs(count[1] - count[0] / 2) <= 1 for count in counts)
    assert abs(sum(count[1] for count in counts) - 3 * 50 / 2) <= 1


def test_an_epoch_is_one_pass_over_the_first_source_and_the_others_go_round():
    sources = [Source(singles("a", 40)), Source(singles("b", 7))]
    new_plan = mixed(sources, epochs=2, batch_size=20)
    order = [sample for update in samples(new_plan) for sample in update]
    assert Counter((v.index, v.epoch) for v in order if not v.source) == {(i, e): 1 for i in range(40) for e in (0, 1)}
    passes = [sample.epoch for sample in order if sample.source]
    assert Counter(passes) == {**dict.fromkeys(range(11), 7), 11: 3} and sorted(passes) == passes
    assert new_plan.epochs == (4, 8) and new_plan.epoch(2) == 0.5
    assert new_plan == mixed(sources, epochs=2, batch_size=20) != mixed(sources, epochs=2, batch_size=20, seed=1)


def test_one_more_source_changes_nothing_of_the_first():
    examples = toys.examples(60)
    alone, both = plan(examples, batch_size=8), mixed([Source(examples), Source(singles("b", 9))], batch_size=16)
    assert [[v for v in update if not v.source] for update in samples(both)] == samples(alone)


def test_a_source_without_pairs_is_an_error():
    with pytest.raises(DataError, match="the examples have no target to train on"):
        mixed([Source(toys.examples(5)), Source([Example("b", {})])])
