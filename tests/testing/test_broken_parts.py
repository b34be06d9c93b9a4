"""Every suite catches typical mistakes of part authors, in words."""

import pytest
from kit.broken import BROKEN

from mmgen.errors import PluginError

ROWS = [
    pytest.param(*broken, marks=pytest.mark.slow if number % 8 else (), id=broken[-1][:40])
    for number, broken in enumerate(BROKEN)
]


@pytest.mark.parametrize("suite, test, words", ROWS)
def test_a_broken_part_is_caught(suite, test, words):
    with pytest.raises((AssertionError, PluginError)) as caught:
        getattr(suite(), test)()
    assert words in str(caught.value) and "\n" not in str(caught.value)
