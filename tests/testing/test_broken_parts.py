"""Every suite catches typical mistakes of part authors, in words."""

import pytest
from kit.broken import BROKEN

ROWS = [
    pytest.param(*broken, marks=pytest.mark.slow if number % 8 else (), id=broken[-1][:40])
    for number, broken in enumerate(BROKEN)
]


@pytest.mark.parametrize("suite, test, words", ROWS)
def test_a_broken_part_is_caught(suite, test, words):
    with pytest.raises(Exception) as caught:  # noqa: B017, PT011 - what a part raises, as it is
        getattr(suite(), test)()
    assert words in str(caught.value) and "\n" not in str(caught.value)
