"""Configs of parts: frozen, closed, and named by their type."""

from typing import Literal

import pytest
from pydantic import ValidationError

import mmgen


class Named(mmgen.EmbedderConfig):
    type: Literal["named"] = "named"


def test_a_config_is_frozen_and_closed():
    with pytest.raises(ValidationError):
        Named(nonsense=1)
    with pytest.raises(ValidationError):
        Named().fields = ("x",)
