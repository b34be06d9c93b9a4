"""Broken generators are caught in words."""

import pytest
from mmgen_generators import Causal, Masked

from mmgen.testing import GeneratorSuite


class MixesRows(Masked):
    """Says wrongly that it can be trained with a backbone whose slots see their whole row."""

    backbones = frozenset({"visible", "row"})


def test_a_generator_whose_training_sees_later_words_is_caught():
    suite = type("Suite", (GeneratorSuite,), {"config": lambda self: MixesRows(max_tokens=8)})
    with pytest.raises(AssertionError, match='backbones names "row", but with TinyRow, whose slots see the whole row'):
        suite().test_trains_as_it_writes_with_every_kind_of_backbone()
    for config in (Masked(max_tokens=8), Causal(max_tokens=8)):
        suite = type("Suite", (GeneratorSuite,), {"config": lambda self, built=config: built})
        suite().test_trains_as_it_writes_with_every_kind_of_backbone()
