"""Backbones: keys and values kept from earlier slots change nothing."""

from __future__ import annotations

import torch

from ..attention import Cache
from ..parts import Backbone
from ..tensors import apply
from .rows import BuildsRows, behind, last, pick, some_ids
from .suite import expect, expect_equal, skip

ENCODE = "mmgen.parts.Backbone.encode and mmgen.attention.Cache"


class CacheSuite(BuildsRows):
    """For backbones with `caches`."""

    def test_cache_equals_no_cache(self) -> None:
        backbone, cache = self._cached()
        before, tail, _ = self.rows(backbone)
        whole = last(backbone, before.followed_by(tail))
        length = before.positions.shape[1]
        first = backbone.encode(before, cache).last
        expect_equal(
            first[before.layout.real],
            whole[:, :length][before.layout.real],
            "the input has other states when a cache is filled",
            ENCODE,
        )
        expect(
            len(cache) == length,
            f"the cache holds {len(cache)} slots after {length}; call cache.grow(slots.layout)",
            "mmgen.attention.Cache",
        )
        rest = backbone.encode(tail, cache).last
        expect_equal(
            rest[tail.layout.real],
            whole[:, length:][tail.layout.real],
            "slots have other states when what stands before them comes from the cache",
            ENCODE,
        )

    def test_cache_forgets(self) -> None:
        backbone, cache = self._cached()
        before, tail, _ = self.rows(backbone)
        backbone.encode(before, cache)
        wanted = backbone.encode(tail, cache).last
        cache.forget(tail.positions.shape[1])
        expect(
            len(cache) == before.positions.shape[1],
            "cache.forget(n) must drop the last n slots",
            "mmgen.attention.Cache.forget",
        )
        expect_equal(
            backbone.encode(tail, cache).last,
            wanted,
            "after cache.forget(n), the same slots have other states",
            "mmgen.attention.Cache.forget",
        )

    def test_cache_repeats_and_selects(self) -> None:
        backbone, cache = self._cached()
        before, tail, _ = self.rows(backbone)
        whole = last(backbone, before.followed_by(tail))[:, before.positions.shape[1] :]
        backbone.encode(before, cache)
        cache.repeat(2)
        states = backbone.encode(pick(tail, [0, 0, 1, 1]), cache).last
        expect_equal(
            states,
            whole[[0, 0, 1, 1]],
            "cache.repeat(2) must give every row twice in a row",
            "mmgen.attention.Cache.repeat",
        )
        cache.forget(tail.positions.shape[1])
        cache.select(torch.tensor([3, 0, 2]))
        states = backbone.encode(pick(tail, [1, 0, 1]), cache).last
        expect_equal(
            states,
            whole[[1, 0, 1]],
            "cache.select(rows) must keep these rows, in this order",
            "mmgen.attention.Cache.select",
        )

    def test_cache_rearranges(self) -> None:
        """Two targets behind each input; the second goes on from what the first has written."""
        backbone, cache = self._cached()
        ids = some_ids(backbone, 8)
        before = self.rows(backbone)[0]
        first, second = (
            [*ids[:2], backbone.end_id],
            [*ids[4:6], backbone.end_id],
        )  # y_1 y_2 m_1 m_2 m_3, five slots each
        tail = behind(backbone, before, [[first, second], [second, first]])
        states = backbone.encode(before.followed_by(tail), cache).last
        layout, of_first = cache.layout, torch.arange(5).repeat(2).expand(2, -1)
        cache.rearrange(of_first)
        expect(
            all(torch.equal(*pair) for pair in zip(vars(cache.layout).values(), vars(layout).values(), strict=True)),
            "cache.rearrange(slots) must leave the layout as it is",
            "mmgen.attention.Cache.rearrange",
        )
        again = backbone.encode(apply(tail, lambda tensor: tensor[:, -1:]), cache).last  # m_3 of the second target
        expect_equal(
            again[:, 0],
            states[:, before.positions.shape[1] + 4],
            "after cache.rearrange(slots) the last slots must hold the keys and values of the slots named",
            "mmgen.attention.Cache.rearrange",
        )

    def _cached(self) -> tuple[Backbone, Cache]:
        backbone = self.backbone()
        return (backbone, backbone.new_cache()) if backbone.caches else skip("does not cache")
