"""Broken caches are caught in words."""

import pytest
from kit.broken import assert_caught, broken_parts


@pytest.mark.parametrize("suite, test, words", broken_parts("caching"))
def test_a_broken_part_is_caught_in_words(suite, test, words):
    assert_caught(suite, test, words)
