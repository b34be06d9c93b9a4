"""Remarks on texts that say little: empty, or equal."""

import pytest

from mmgen.evaluation.collapse import MEND, collapsed


@pytest.mark.parametrize(
    ("texts", "remark"),
    [
        (["", "?", "a dog", "??"], "3 of 4 texts contain no word"),
        (["why ?"] * 6 + list("abcdef"), "6 of 12 texts are the same ('why ?')"),
        (["why ?"] * 4, ""),  # so few say nothing
        (["?"], ""),  # as its own remark says
        (list("abcdefghijkl"), ""),
    ],
)
def test_texts_that_are_empty_or_equal_are_remarked(texts, remark):
    assert collapsed(texts) == (remark and f"{remark}; {MEND}")
