"""Tests of the backbone suite: cached keys and values of earlier slots (`mmgen.attention.Cache`) change nothing."""

from __future__ import annotations

import torch

from ..attention import Cache
from ..parts import Backbone
from ..tensors import Slots, apply
from .rows import BuildsRows, behind, last, pick, some_ids
from .suite import assert_close, skip


class CacheSuite(BuildsRows):
    """For backbones with `caches`."""

    def test_cache_equals_no_cache(self) -> None:
        backbone, cache, before, tail = self._fresh_cache()
        rows = last(backbone, before.followed_by(tail))
        length, inputs, written = before.positions.shape[1], before.layout.real, tail.layout.real
        first = backbone.encode(before, cache).last
        assert_close(first[inputs], rows[:, :length][inputs], "with a cache, the input has different states")
        message = f"the cache has {len(cache)} slots after {length}; call cache.grow(slots.layout)"
        assert len(cache) == length, message
        message = "slots have different states if the slots before them come from the cache"
        assert_close(backbone.encode(tail, cache).last[written], rows[:, length:][written], message)

    def test_cache_forgets(self) -> None:
        backbone, cache, before, tail = self._fresh_cache()
        backbone.encode(before, cache)
        states = backbone.encode(tail, cache).last
        cache.forget(tail.positions.shape[1])
        assert len(cache) == before.positions.shape[1], "cache.forget(n) must drop the last n slots"
        message = "after cache.forget(n), the same slots have different states"
        assert_close(backbone.encode(tail, cache).last, states, message)

    def test_cache_repeats_and_selects(self) -> None:
        backbone, cache, before, tail = self._fresh_cache()
        rows = last(backbone, before.followed_by(tail))[:, before.positions.shape[1] :]
        backbone.encode(before, cache)
        cache.repeat(2)
        states = backbone.encode(pick(tail, [0, 0, 1, 1]), cache).last
        assert_close(states, rows[[0, 0, 1, 1]], "cache.repeat(2) must give every row twice, one after the other")
        cache.forget(tail.positions.shape[1])
        cache.select(torch.tensor([3, 0, 2]))
        states = backbone.encode(pick(tail, [1, 0, 1]), cache).last
        assert_close(states, rows[[1, 0, 1]], "cache.select(rows) must keep these rows, in this order")

    def test_cache_rearranges(self) -> None:
        """Two targets behind each input, y_1 y_2 m_1 m_2 m_3 each; the second continues from the tokens of the
        first."""
        if self.config().mixes == "row":
            skip("a slot continues from the slots before it, so other slots cannot be put before it")
        backbone, cache, before, _ = self._fresh_cache()
        ids = some_ids(backbone, 8)
        first, second = [*ids[:2], backbone.end_id], [*ids[4:6], backbone.end_id]
        tail = behind(backbone, before, [[first, second], [second, first]])
        states = backbone.encode(before.followed_by(tail), cache).last
        layout = cache.layout
        cache.rearrange(torch.arange(5).repeat(2).expand(2, -1))  # the slots of the first target, for both
        same = all(torch.equal(*pair) for pair in zip(vars(cache.layout).values(), vars(layout).values(), strict=True))
        assert same, "cache.rearrange(slots) must not change the layout"
        again = backbone.encode(apply(tail, lambda tensor: tensor[:, -1:]), cache).last  # m_3 of the second target
        message = "after cache.rearrange(slots) the last slots must have the keys and values of the given slots"
        assert_close(again[:, 0], states[:, before.positions.shape[1] + 4], message)

    def _fresh_cache(self) -> tuple[Backbone, Cache, Slots, Slots]:
        """A backbone, an empty cache, inputs, and targets behind them."""
        backbone = self.backbone()
        if not backbone.caches:
            skip("does not cache")
        before, tail, _ = self.rows(backbone)
        return backbone, backbone.new_cache(), before, tail
