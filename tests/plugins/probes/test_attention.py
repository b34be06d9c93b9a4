"""The probe of attention: the chosen head."""

import json

import pytest
import torch
from kit.probes import EXAMPLES, Pictured, subject
from mmgen_probes import Attention

from mmgen import DataError, UnavailableError
from mmgen.attention_maps import collate, one_layer, token_attention
from mmgen.evaluation.answers import generate

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


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"layer": 3}, "s0: layer = 3: the encoder has the layers 1 to 2, or -1 for the last"),
        ({"head": 5}, "s0: head = 5: a layer has only 4 heads"),
    ],
)
def test_an_unknown_layer_or_head(settings, words, tmp_path):
    with pytest.raises(UnavailableError) as error:
        Attention(**settings).build().run(subject("caption"), tmp_path)
    assert str(error.value) == words


def test_an_unknown_example(tmp_path):
    with pytest.raises(DataError) as error:
        Attention(ids=("e1", "e7")).build().run(subject("caption"), tmp_path)
    assert str(error.value) == "ids: no example e7; name some of the 4, such as e0"


def test_many_examples_are_thinned_out_and_those_drawn_are_among_them(tmp_path):
    result = Attention(limit=2, ids=("e3",)).build().run(subject("caption"), tmp_path)
    assert list(json.loads((tmp_path / "attention.json").read_text())["examples"]) == ["e0", "e2", "e3"]
    assert "3 of 4 examples, evenly spaced" in result.notes and (tmp_path / "e3.svg").exists()
