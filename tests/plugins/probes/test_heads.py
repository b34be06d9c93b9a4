"""Attention heads: from words to regions, and their figure."""

from dataclasses import replace

import pytest
import torch
from kit.probes import EXAMPLES, model
from mmgen_probes import heads
from mmgen_probes.grounding import attention
from mmgen_probes.heads import Tally

from mmgen.attention_maps import collate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


def test_attention_from_words_to_regions_is_that_of_transformers_itself():
    bert = model()
    lengths = [EXAMPLES[0], replace(EXAMPLES[1], inputs={**EXAMPLES[1].inputs, "caption": "the cat"})]
    for entry, weights in zip(lengths, attention(bert, lengths, ("image", "caption"), "caption", "image"), strict=True):
        regions = bert.embedders["image"](**collate(bert, [entry], ["image"]).inputs["image"]).states
        start, end = (
            bert.backbone.embed(torch.tensor([[mark]])) for mark in (bert.backbone.start_id, bert.backbone.end_id)
        )
        words = bert.backbone.embed(torch.tensor([bert.backbone.encode_text(entry.inputs["caption"])]))
        bert.backbone.model.set_attn_implementation("eager")
        with torch.no_grad():
            row = torch.cat([start, regions, end, words], 1)
            out = bert.backbone.model.base_model(inputs_embeds=row, output_attentions=True).attentions
        bert.backbone.model.set_attn_implementation("sdpa")
        assert torch.allclose(weights, torch.stack([layer[0, :, 5:, 1:4] for layer in out]), atol=1e-5)


def test_heads_are_counted_as_visualbert_counts_them():
    """Two heads by hand: one is correct and attends to regions, the other is correct more often but hardly attends."""
    tally = Tally()
    fits = torch.tensor([True, False])
    for looked in ([[0.5, 0.1], [0.06, 0.04]], [[0.2, 0.6], [0.06, 0.04]]):
        tally.add(torch.tensor([looked]), fits, surest=1)
    assert tally.right.tolist() == [[1, 2]] and tally.percent(tally.regions).tolist() == [
        [pytest.approx(70), pytest.approx(10)]
    ]
    assert tally.rank_heads(0) == [(0, 1), (0, 0)]
    assert tally.rank_heads(0.2) == [(0, 0)] and tally.rank_heads(0.2, active=False) == [(0, 1)]
    assert (tally.confident, tally.any_region, tally.at_best) == (0, 1.0, 2)


def test_every_head_is_drawn_within_its_panel(tmp_path, monkeypatch):
    """Panels share an axis, and the highest head may be in any of them."""
    low, high = Tally(), Tally()
    for _ in range(10):
        low.add(torch.tensor([[[0.2, 0.6], [0.3, 0.4]]]), torch.tensor([False, False]), surest=1)
        high.add(torch.tensor([[[0.6, 0.2], [0.4, 0.3]]]), torch.tensor([True, False]), surest=1)
    drawn = []
    monkeypatch.setattr(heads.plotting, "save", lambda figure, path: drawn.extend(figure.axes))
    heads.draw([("low", 0, low), ("high", 1, high)], 0.2, tmp_path / "figure")
    assert len(drawn) == 2
    for axes in drawn:
        lowest, highest = axes.get_ylim()
        assert lowest == 0 and all(0 <= y <= highest for dots in axes.collections for _, y in dots.get_offsets().data)
    assert max(y for dots in drawn[1].collections for _, y in dots.get_offsets().data) == 100
