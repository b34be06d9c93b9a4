"""Backbones whose slots see too much or too little are caught in words."""

from dataclasses import replace

import pytest
from kit.broken import assert_caught, broken_parts, tiny

from mmgen.testing import TinyBackbone


@pytest.mark.parametrize("suite, test, words", broken_parts("visibility"))
def test_a_broken_part_is_caught_in_words(suite, test, words):
    assert_caught(suite, test, words)


def test_rotary_positions_pass():
    """Positions that count only by how far apart they are."""

    class Relative(TinyBackbone):
        def encode(self, slots, cache=None, output=()):
            return super().encode(replace(slots, positions=slots.positions - slots.positions[:, :1]), cache, output)

    tiny(Relative)().test_positions_matter()
