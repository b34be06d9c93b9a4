"""fp32 on the GPU: every family that mmgen's attention function reaches, packed and behind cached inputs, equals the
paper's procedure on the processor, to 1e-5 of its size."""

import pytest
import torch
from kit import families

from mmgen.tensors import MASK, apply


@pytest.mark.parametrize("family", families.REACHED)
@torch.no_grad()
def test_a_family_is_the_papers_procedure(family, device):
    backbone = families.build(family)
    before, alone, targets = families.ragged(backbone)
    expected = torch.stack(families.naive_log_probabilities(backbone, alone, targets))
    tail = families.behind(backbone, before, targets)
    where, first = tail.layout.role == MASK, before.positions.shape[1]
    backbone.to(device)
    before, tail = (apply(slots, lambda tensor: tensor.to(device)) for slots in (before, tail))
    packed = backbone.encode(before.followed_by(tail)).last[:, first:]
    cache = backbone.new_cache()
    backbone.encode(before, cache)
    for states in (packed, backbone.encode(tail, cache).last):
        log_probabilities = backbone.logits(states).log_softmax(-1).cpu()[where]
        torch.testing.assert_close(log_probabilities, expected, atol=2e-5, rtol=1e-5)
