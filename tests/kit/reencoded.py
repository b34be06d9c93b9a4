"""Training and writing token by token, for models whose inputs set positions and add terms: X, y_<t and [MASK] are
encoded again for every t, without packing or a cache. `kit/naive.py` works without mmgen's rows."""

from dataclasses import replace

import pytest
import torch

from kit import naive
from mmgen.data.collate import Collator
from mmgen.decoding import Decoding
from mmgen.evaluation.answers import generate
from mmgen.tensors import MASK, WRITTEN, Layout


def after(model, example, written: list[int]) -> torch.Tensor:
    """log P(y_t | X, y_<t), (V,). Written tokens have the term that inputs add to the tail."""
    prefix = model.prefix(Collator(model, model.inputs, ())([example]))
    ids = torch.tensor([[*written, model.backbone.mask_id]])
    times = torch.arange(1, len(written) + 2).unsqueeze(0)
    role = torch.full_like(ids, WRITTEN)
    role[0, -1] = MASK
    states = model.backbone.embed(ids) + (0 if prefix.term is None else prefix.term.unsqueeze(1))
    tail = replace(model.written(prefix, ids, times - 1, Layout(role, torch.ones_like(ids), times)), states=states)
    row = prefix.slots.followed_by(tail)
    return model.backbone.logits(model.backbone.encode(row).last[0, -1]).log_softmax(-1)


def assert_matches_reencoding(model, examples) -> None:
    """Packed training and cached writing equal `after`, token by token."""
    expected = 0.0
    for example in examples:
        (target,) = model.generator.reader.targets(example)
        expected -= sum(float(after(model, example, target[:t])[token]) for t, token in enumerate(target))
    batch = Collator(model, model.inputs)(examples)
    assert float(model(batch).sums["generator.loss"]) == pytest.approx(expected, rel=1e-4)
    for example, (text,) in zip(examples, generate(model, examples, Decoding()), strict=True):
        written = []
        while len(written) < model.generator.max_tokens and model.backbone.end_id not in written:
            written.append(int(naive.without_special(model.backbone, after(model, example, written)).argmax()))
        assert list(text.tokens) == written
