"""The visibility rule, compared with the paper's words, slot by slot."""

import torch
from hypothesis import example, given
from hypothesis import strategies as st
from mmgen_generators.stepwise import rows_to_keep

from mmgen.attention import MULTIPLES, Cache, visible
from mmgen.tensors import MASK, NOISY, PAD, PREFIX, WRITTEN, Layout

slot = st.one_of(
    st.just((PAD, 0, 0)),
    st.just((PREFIX, 0, 0)),
    st.tuples(st.sampled_from([WRITTEN, MASK, NOISY]), st.integers(1, 3), st.integers(1, 4)),
)


def layout(slots) -> Layout:
    return Layout(*torch.tensor(slots).T.unsqueeze(1))


def may_look(query, key) -> bool:
    """X sees X; y_t sees X and y_<=t; m_t sees X and y_<t; a noisy block sees X, y_<t and itself; only within one
    question; no slot sees padding or a [MASK]."""
    (role, group, time), (key_role, key_group, key_time) = query, key
    if role == PAD or key_role in (PAD, MASK):
        return False
    if key_role == NOISY:
        return role == NOISY and group == key_group and time == key_time
    if key_role == PREFIX:
        return True
    return role != PREFIX and group == key_group and (key_time < time or (key_time == time and role == WRITTEN))


@given(st.lists(slot, min_size=1, max_size=12))
@example([(MASK, 1, 1), (MASK, 1, 2)])
def test_the_rule(slots):
    seen = visible(layout(slots))[0].tolist()
    for i, query in enumerate(slots):
        for j, key in enumerate(slots):
            assert seen[i][j] == (i == j or may_look(query, key))


@given(st.lists(slot, min_size=2, max_size=10), st.data())
def test_slots_behind_a_cache_see_what_they_see_in_a_whole_row(slots, data):
    cut = data.draw(st.integers(1, len(slots) - 1))
    cache = Cache()
    cache.grow(layout(slots[:cut]))
    queries = layout(slots[cut:])
    assert torch.equal(visible(queries, cache.grow(queries)), visible(layout(slots))[:, cut:])


def test_finished_rows_fill_up_multiples_on_a_gpu(monkeypatch):
    finished = torch.tensor([True, False, True, True, False, False, True])
    assert rows_to_keep(finished).tolist() == [1, 4, 5]
    monkeypatch.setitem(MULTIPLES, "cpu", 4)
    assert rows_to_keep(finished).tolist() == [0, 1, 4, 5]
    assert rows_to_keep(finished | True).tolist() == []
    monkeypatch.setitem(MULTIPLES, "cpu", 16)
    assert rows_to_keep(finished).tolist() == [*range(7)]
