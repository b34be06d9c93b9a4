"""fp32 on the GPU: an encoder that sees has the loss of the processor, and writes the same texts."""

import copy

import pytest
import torch
from kit import seeing

from mmgen.data.collate import Collator
from mmgen.decoding import Decoding
from mmgen.evaluation.generate import generate


@pytest.mark.parametrize("family", seeing.BACKBONES)
@torch.no_grad()
def test_loss_and_texts_are_those_of_the_processor(family, device):
    model, examples = seeing.model(family), seeing.examples()
    batch = Collator(model, ["image", "caption"])(examples)
    moved = copy.deepcopy(model).to(device)
    torch.testing.assert_close(moved(batch.to(device)).mean.cpu(), model(batch).mean, atol=2e-5, rtol=1e-5)
    expected, texts = (
        [[text.tokens for text in row] for row in generate(network, examples, Decoding())] for network in (model, moved)
    )
    assert texts == expected
