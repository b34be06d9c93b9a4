"""Remarks on texts that say little: empty, equal, or stuttering."""

import pytest

from mmgen.evaluation.collapse import MEND, collapsed, repeats_itself


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


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        ("what is the red dog doing near a tree ?", ""),
        ("which " * 20, "the text stutters: 'which which'"),
        (" ?", "the text contains no word"),
        ("is the dog the dog near it ?", "the text stutters: 'the dog the dog'"),
        ("how many dogs are in the red car in the snow ?", ""),
    ],
)
def test_a_text_that_repeats_itself_is_remarked(text, remark):
    assert repeats_itself(text) == remark
