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


def test_heads_that_look_at_the_right_region_are_right(tmp_path, monkeypatch):
    """All heads of the second layer attend to the region in the upper left corner."""
    weights = torch.full((2, 4, 6, 3), 0.01)
    weights[1, :, :, 0] = 0.95
    monkeypatch.setattr("mmgen_probes.grounding.attention", lambda model, examples, *_: [weights] * len(examples))
    result = Grounding().build().run(subject("image caption"), tmp_path)
    saved = json.loads((tmp_path / "grounding.json").read_text())["s0"]["entities"]
    third = pytest.approx(100 / 3)
    assert saved["accuracy"][1] == [pytest.approx(200 / 3)] * 4  # right for two cats, wrong for the water
    assert min(saved["attention_on_regions"][1]) > 90 and saved["active"] == ["2-1", "2-2", "2-3", "2-4"]
    assert (saved["confident"], saved["at_best"]) == (third, 100)  # the surest region is the water
    *_, surest, random, best = result.tables["Entity grounding, % of phrases: best heads"]
    assert surest == ["s0", "surest region", third, None, "12"] and best == ["s0", "at best", 100, None, "12"]
    assert random[1:3] == ["any region", third]


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
