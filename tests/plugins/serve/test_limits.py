"""The limits of the service."""

from dataclasses import FrozenInstanceError, fields

import pytest
from mmgen_serve.limits import Limits


def test_every_limit_is_described_and_positive():
    limits = Limits()
    for limit in fields(Limits):
        assert f"    {limit.name} " in Limits.__doc__ and getattr(limits, limit.name) > 0
    assert limits.body <= limits.bodies and limits.queue <= limits.connections
    with pytest.raises(FrozenInstanceError):
        limits.body = 1
