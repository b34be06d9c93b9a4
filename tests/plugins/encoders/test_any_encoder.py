"""Encoders of any family: plain rows, packed rows, cached writing, beams and gradients equal the paper's procedure,
written out in tests/kit/families.py."""

import pytest
import torch
from kit import families
from mmgen_encoders import AnyEncoder
from mmgen_encoders.self_check import MIXES, difference_from_source

from mmgen.errors import DataError
from mmgen.tensors import MASK, WRITTEN, Layout, Slots
from mmgen.testing import TEXTS, BackboneSuite

pytestmark = pytest.mark.slow

CLOSE = 1e-5
SHOWN = ("modernbert", "albert", "eurobert")  # the others only by night
every_family = pytest.mark.parametrize(
    "family", [pytest.param(name, marks=() if name in SHOWN else pytest.mark.exhaustive) for name in families.REACHED]
)


@every_family
@torch.no_grad()
def test_plain_rows_are_those_of_transformers(family):
    backbone = families.build(family)
    ids = families.random_ids(backbone, 2, 30)
    before = families.inputs(backbone, ids.tolist())
    logits = backbone.logits(backbone.encode(before).last)
    torch.testing.assert_close(logits, families.source_logits(backbone, ids), atol=CLOSE, rtol=0)


@every_family
def test_packed_rows_are_the_papers_procedure_with_its_gradients(family):
    """Ragged rows beyond the window, with regions in front."""
    backbone = families.build(family)
    before, alone, targets = families.ragged(backbone)
    packed = families.packed_log_probabilities(backbone, before, targets)
    gradients = torch.autograd.grad(
        sum(row[7] for row in packed), [*_used(backbone)], allow_unused=True, retain_graph=True
    )
    naive = families.naive_log_probabilities(backbone, alone, targets)
    expected = torch.autograd.grad(
        sum(row[7] for row in naive), [*_used(backbone)], allow_unused=True, retain_graph=True
    )
    torch.testing.assert_close(torch.stack(packed), torch.stack(naive), atol=CLOSE, rtol=0)
    for gradient, right in zip(gradients, expected, strict=True):
        if gradient is not None and right is not None and right.numel():
            torch.testing.assert_close(gradient, right, atol=CLOSE * max(1.0, float(right.abs().max())), rtol=0)
    assert sum(gradient is not None for gradient in gradients) > 10


def _used(backbone):
    return (parameter for parameter in backbone.parameters() if parameter.requires_grad)


@every_family
@torch.no_grad()
def test_cached_beams_are_the_papers_procedure(family):
    """Two beams a row, which change places while they are written."""
    backbone = families.build(family)
    before, alone, _ = families.ragged(backbone)
    cache = backbone.new_cache()
    backbone.encode(before, cache)
    cache.repeat(2)
    sources, free = [0, 0, 1, 1], before.layout.real.sum(1).repeat_interleave(2)
    written = [[], [], [], []]
    for step, order in enumerate(([0, 1, 2, 3], [1, 0, 3, 3], [0, 0, 2, 3], [1, 1, 2, 2]), 1):
        cache.select(torch.tensor(order))
        written = [[*written[row]] for row in order]
        feed = [*([] if step == 1 else [[row[-1] for row in written]]), [backbone.mask_id] * 4]
        logits = backbone.logits(backbone.encode(_slots(backbone, feed, free, step), cache).last[:, -1])
        cache.forget(1)
        expected = [families.naive(backbone, alone[source], row) for source, row in zip(sources, written, strict=True)]
        torch.testing.assert_close(logits.log_softmax(-1), torch.stack(expected), atol=CLOSE, rtol=0)
        written = [[*row, 5 + 7 * number + step] for number, row in enumerate(written)]


def _slots(backbone, feed: list[list[int]], free: torch.Tensor, step: int) -> Slots:
    """The last token of each row, if there is one, and a [MASK]."""
    ids = torch.tensor(feed).T
    times = torch.arange(step - ids.shape[1] + 1, step + 1).expand_as(ids)
    roles = torch.full_like(ids, WRITTEN)
    roles[:, -1] = MASK
    positions = free[:, None] + times - 1
    layout = Layout(roles, torch.ones_like(ids), times)
    return Slots(backbone.embed(ids), positions, torch.zeros_like(ids), layout)


class ShortRows(AnyEncoder):
    """Of few positions, since the suite tries a row of all of them."""

    def sizes(self):
        return families.SIZES["modernbert"]


class TestAnyEncoder(BackboneSuite):
    def config(self):
        return ShortRows(num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=64)

    def source_logits(self, backbone, ids):
        return families.source_logits(backbone, ids)


def test_slots_that_mix_outside_attention_are_found():
    backbone = families.build("albert")
    backbone.model.albert.embeddings.register_forward_hook(lambda _, __, states: states + states.roll(1, 1))
    assert difference_from_source(backbone) == MIXES


def test_embeddings_that_read_neighbouring_words_are_refused():
    """MobileBERT's, as published; without them it equals the paper's procedure (`families.SIZES`)."""
    with pytest.raises(DataError, match="cannot use the encoder 'mobilebert': its slots mix outside attention .neighb"):
        AnyEncoder(family="mobilebert", num_hidden_layers=2, hidden_size=32, vocab_size=64).build(texts=TEXTS)


def test_a_wrong_head_is_found():
    backbone = families.build("modernbert")
    assert difference_from_source(backbone) == ""
    backbone.logits = lambda states: backbone.model.decoder(states)  # without the transform
    assert difference_from_source(backbone).startswith("through mmgen its logits differ from its own by up to ")


def test_a_wrong_window_is_found(monkeypatch):
    backbone = families.build("modernbert")
    monkeypatch.setattr("mmgen_encoders.attention.AttentionCall.within", lambda call, width: call.seen)
    assert "its window, positions, embeddings or head work in a way" in difference_from_source(backbone)
