"""The base class of everything that a recipe sets: frozen, and closed."""

import pytest
from pydantic import ValidationError

from mmgen.settings import Config


class Rate(Config):
    value: float = 1.0


def test_settings_are_frozen_and_closed():
    with pytest.raises(ValidationError, match="frozen"):
        Rate().value = 2.0
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        Rate(valu=2.0)
