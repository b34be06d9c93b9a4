"""Checks that a module keeps everything on one device, on torch's meta device."""

import pytest
import torch
from torch import nn

from mmgen.testing.devices import MixedDevices, OneDevice, plain_tensors


def test_tensors_of_two_devices_do_not_meet():
    on_cpu, on_meta = torch.ones(2), torch.ones(2, device="meta")
    with OneDevice():
        assert (on_meta + on_meta).is_meta and (on_meta * torch.tensor(2.0)).is_meta  # a number may be anywhere
        with pytest.raises(MixedDevices, match="add"):
            on_meta + on_cpu
        with pytest.raises(MixedDevices, match="cat"):
            torch.cat([on_meta, on_cpu])
        assert on_cpu.to(on_meta).is_meta


def test_plain_tensors_are_named_with_their_module():
    class Keeps(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = nn.Linear(2, 2)
            self.inner.scale = torch.ones(1)
            self.register_buffer("safe", torch.ones(1))

    assert plain_tensors(Keeps()) == ["inner.scale"] and plain_tensors(nn.Linear(2, 2)) == []
