"""Attention heads: from words to regions, compared with transformers and with the papers' definitions."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.probes import EXAMPLES, FACTS, Pictured, model, subject
from kit.refusals import refusal
from mmgen_probes import Grounding
from mmgen_probes.grounding import attention
from mmgen_probes.heads import Tally

from mmgen.attention_maps import collate

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


class TestGrounding(Pictured):
    def config(self):
        return Grounding()


def test_a_model_that_looks_at_the_right_region_is_right(tmp_path):
    """Queries and keys by hand: every word attends only to the region in the upper left corner."""
    bert = model()
    layer = bert.backbone.model.base_model.encoder.layer[1].attention.self
    with torch.no_grad():
        layer.query.weight.zero_()
        layer.query.bias.fill_(1.0)
    states = {}
    layer.register_forward_pre_hook(lambda module, arguments: states.setdefault("x", arguments[0]))
    rows = attention(bert, EXAMPLES[:1], ("image", "caption"), "caption", "image")
    target = states["x"][0, 1]  # of the first region
    rest = torch.cat([states["x"][0, :1], states["x"][0, 2:]])
    direction = torch.linalg.lstsq(torch.cat([target[None], rest]), torch.eye(len(rest) + 1)[:, :1]).solution[:, 0]
    with torch.no_grad():
        layer.key.weight.copy_(direction.repeat(32, 1) * 20)
        layer.key.bias.zero_()
    layer._forward_pre_hooks.clear()
    weights = attention(bert, EXAMPLES[:1], ("image", "caption"), "caption", "image")[0]
    assert rows[0].shape == weights.shape and weights[1, :, :, 0].min() > 0.9
    one_caption = [
        replace(EXAMPLES[0], facts={**FACTS, "captions": FACTS["captions"][:1], "phrases": FACTS["phrases"][:1]})
    ]
    result = Grounding().build().run(subject("image caption", models=[bert], examples=one_caption), tmp_path)
    saved = json.loads((tmp_path / "grounding.json").read_text())["s0"]["entities"]
    assert saved["accuracy"][1] == [50.0] * 4 and saved["count"] == 2  # right for the cat, wrong for the water
    assert min(saved["attention_on_regions"][1]) > 90 and {"2-1", "2-2", "2-3", "2-4"} <= set(saved["active"])
    assert saved["confident"] == 50.0 and saved["at_best"] == 100.0  # the surest region is the water
    rows = result.tables["Entity grounding, % of phrases: best heads"]
    assert rows[-3] == ["s0", "surest region", 50.0, None, "2"] and rows[-1] == ["s0", "at best", 100.0, None, "2"]
    assert rows[-2][2] == pytest.approx(100 / 3)


def test_an_overlap_equal_to_the_threshold_is_right(tmp_path):
    """In the 32-bit numbers of stored boxes, this region's intersection over union is 0.49999999."""
    record = replace(EXAMPLES[0].inputs["image"], boxes=np.array([(0.02, 0.02, 0.04, 0.06)] * 3, np.float32))
    facts = {**FACTS, "things": [{"box": [0.02, 0.02, 0.04, 0.04]}] * 2}
    examples = [replace(EXAMPLES[0], inputs={**EXAMPLES[0].inputs, "image": record}, facts=facts)]
    Grounding().build().run(subject("image caption", examples=examples), tmp_path)
    assert json.loads((tmp_path / "grounding.json").read_text())["s0"]["entities"]["at_best"] == 100


def test_a_failing_step_is_a_note_and_no_result_is_an_error(tmp_path):
    result = Grounding().build().run(subject("image caption", "caption"), tmp_path)
    assert result.notes[0] == "s1: reads caption; grounding needs regions with boxes and a caption"
    message = refusal(Grounding().build().run, subject("image"), tmp_path)
    assert message == "s0: reads image; grounding needs regions with boxes and a caption"
    message = refusal(
        Grounding().build().run, subject("image caption", examples=[replace(EXAMPLES[0], facts={})]), tmp_path
    )
    assert message == (
        "annotations: the data set has no boxes for the captions' phrases; name a folder of Flickr30k Entities"
    )


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
