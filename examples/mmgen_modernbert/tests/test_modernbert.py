"""The backbone passes mmgen's suite, and equals transformers' own ModernBertForMaskedLM beyond its window."""

import pytest
import torch
from mmgen.tensors import PREFIX
from mmgen.testing import TEXTS, BackboneSuite
from mmgen.testing.rows import behind, last, prefix, some_ids

from mmgen_modernbert import ModernBert


class TestModernBert(BackboneSuite):
    source_length = 40

    def config(self):
        return ModernBert(num_hidden_layers=4, hidden_size=32, num_attention_heads=2, vocab_size=100, window=8)

    def source_logits(self, backbone, ids):
        return backbone.model(input_ids=ids).logits


def test_the_published_window():
    class Published(TestModernBert):
        source_length = 160  # the window is 128, 64 to either side

        def config(self):
            return ModernBert(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100)

    Published().test_equals_its_source()


@torch.no_grad()
def test_packed_rows_beyond_the_window_are_those_of_the_source():
    """The prediction of a [MASK] after a long input, among other targets, equals the source model's on that target's
    plain row."""
    torch.manual_seed(0)
    backbone = (
        ModernBert(num_hidden_layers=4, hidden_size=32, num_attention_heads=2, vocab_size=100, window=8)
        .build(texts=TEXTS)
        .eval()
    )
    ids = some_ids(backbone, 8)
    before = prefix(backbone, [[backbone.start_id, *ids * 4]])
    targets = [ids[:5], ids[2:8], ids[1:3]]
    row = before.followed_by(behind(backbone, before, [targets]))
    packed, slot = backbone.logits(last(backbone, row)), before.positions.shape[1]
    for target in targets:
        slot += len(target) - 1
        for step in range(1, len(target) + 1):
            alone = before.followed_by(behind(backbone, before, [[target]], [step]))
            torch.testing.assert_close(packed[:, slot], plain(backbone, alone)[:, -1], atol=1e-4, rtol=0)
            slot += 1


def plain(backbone, row):
    """Logits of the source model for a row in order, with its masks written out: the input sees itself only,
    generated tokens see everything before them."""
    slots, written = torch.arange(row.positions.shape[1]), row.layout.role[0] != PREFIX
    full = ~written | (written.unsqueeze(1) & (slots <= slots.unsqueeze(1)))
    near = full & ((slots - slots.unsqueeze(1)).abs() <= backbone.model.config.sliding_window)
    masks = {"full_attention": full[None, None], "sliding_attention": near[None, None]}
    return backbone.model(inputs_embeds=row.states, attention_mask=masks).logits


def test_an_odd_window_is_refused():
    with pytest.raises(ValueError, match=r"window \(7\) must be even: half of it lies on either side"):
        ModernBert(window=7)
