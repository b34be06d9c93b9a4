"""One-line errors."""

import pytest

from mmgen.errors import MmgenError


def refusal(act, *arguments, **options) -> str:
    """The one-line error message."""
    with pytest.raises(MmgenError) as error:
        act(*arguments, **options)
    assert "\n" not in str(error.value), str(error.value)
    return str(error.value)
