"""The probe of attention: the chosen head, and its drawings."""

import json
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest
import torch
from kit.probes import EXAMPLES, Pictured, subject
from kit.refusals import refusal
from mmgen_probes import Attention

from mmgen.attention_maps import collate, one_layer, token_attention
from mmgen.evaluation.answers import generate
from mmgen.parts import Picture

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


class TestAttention(Pictured):
    def config(self):
        return Attention(examples=1)


def test_attention_is_that_of_the_chosen_head(tmp_path):
    probed_steps = subject("image caption")
    Attention(layer=1, head=2, examples=1).build().run(probed_steps, tmp_path)
    bert = probed_steps.steps[0].load()
    tokens = [texts[0].tokens for texts in generate(bert, EXAMPLES)]
    batch = collate(bert, EXAMPLES, bert.inputs)
    expected = token_attention(bert, batch, tokens, {"chosen": one_layer(0, 1)})
    saved = json.loads((tmp_path / "attention.json").read_text())
    for entry, seen in zip(EXAMPLES, expected, strict=True):
        reading = saved["examples"][entry.id]
        assert reading["inputs"]["image"]["labels"] == ["a cat", "water", "all"]
        assert reading["inputs"]["caption"]["labels"] == ["a", "red", "cat", "near", "the", "water"]
        weights = torch.tensor(reading["steps"]["s0"]["weights"])
        assert torch.allclose(weights[0, :3], seen.weights["chosen"][0, seen.inputs["image"]], atol=2e-4)
        assert torch.allclose(weights.sum(1), torch.ones(len(weights)), atol=2e-3)


def test_an_unknown_layer_or_example(tmp_path):
    for settings, message in (
        ({"layer": 3}, "s0: layer = 3: the encoder has the layers 1 to 2, or -1 for the last"),
        ({"ids": ("e1", "e7")}, "ids: no example e7; name some of the 4, such as e0"),
    ):
        assert refusal(Attention(**settings).build().run, subject("caption"), tmp_path) == message


def test_many_examples_are_thinned_out_and_those_drawn_are_among_them(tmp_path):
    result = Attention(limit=2, ids=("e3",)).build().run(subject("caption"), tmp_path)
    assert list(json.loads((tmp_path / "attention.json").read_text())["examples"]) == ["e0", "e2", "e3"]
    assert "3 of 4 examples, evenly spaced" in result.notes and (tmp_path / "e3.svg").exists()


def test_a_drawing_has_a_panel_a_word_with_boxes_and_words_and_its_letters_are_no_formulas(drawn, tmp_path):
    from PIL import Image

    picture = Picture("picture-0", lambda: Image.new("RGB", (300, 200), (200, 220, 240)))
    odd = replace(EXAMPLES[0], id="an/odd id", inputs={**EXAMPLES[0].inputs, "caption": "a $cat$ costs $2 \\frac"})
    probed_steps = subject("image caption", "caption", examples=[odd], pictures={"picture-0": picture})
    result = Attention().build().run(probed_steps, tmp_path)
    letters = (tmp_path / "an_odd_id.svg").read_text(encoding="utf-8")
    ElementTree.fromstring(letters)
    assert ">s0<" in letters and ">s1<" in letters and "frac<" in letters
    (rows,) = result.tables.values()
    assert rows[0] == ["step", "image", "caption", "marks", "what was written", "words"]
    assert rows[2][1] is None and sum(value for value in rows[1][1:5]) == pytest.approx(100)
