"""The probe of similarity: the cosine of states, paired and unpaired."""

import json
from dataclasses import replace

import pytest
import torch
from kit.probes import EXAMPLES, Pictured, model, subject
from kit.refusals import refusal
from mmgen_encoders import Bert
from mmgen_inputs import Text
from mmgen_probes import Similarity
from mmgen_probes.similarity import start_states

from mmgen.attention_maps import collate
from mmgen.model import compose
from mmgen.testing import Greedy
from mmgen.testing.toy import TEXTS

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("undrawn")]


class TestSimilarity(Pictured):
    def config(self):
        return Similarity()


def test_similarity_is_the_cosine_of_cls_that_transformers_itself_gives(drawn, tmp_path):
    """Figure 3: the caption alone as `[CLS] caption`, the picture alone as `[CLS] regions`; against the plain
    encoder."""
    probed_steps = subject("caption")
    result = Similarity().build().run(probed_steps, tmp_path)
    bert, expected = probed_steps.steps[0].load(), []
    for entry in EXAMPLES:
        states = []
        for name in ("image", "caption"):
            segment = bert.embedders[name](**collate(bert, [entry], [name]).inputs[name]).states
            start = bert.backbone.embed(torch.tensor([[bert.backbone.start_id]]))
            with torch.no_grad():
                out = bert.backbone.model.base_model(
                    inputs_embeds=torch.cat([start, segment], 1), output_hidden_states=True
                )
            states.append(torch.stack([layer[0, 0] for layer in out.hidden_states[1:]]))
        expected.append(torch.cosine_similarity(*states, dim=-1))
    saved = json.loads((tmp_path / "similarity.json").read_text())
    assert saved["curves"]["s0"]["similarity"] == pytest.approx(torch.stack(expected).mean(0).tolist(), abs=1e-4)
    assert list(saved["curves"]) == ["s0", "random transformer"] and saved["inputs"] == ["image", "caption"]
    (rows,) = result.tables.values()
    assert rows[0] == ["step", "layer 1", "layer 2", "unpaired"] and rows[1][0] == "s0"
    assert result.plots == {"Cosine of [CLS] between image alone and caption alone": "similarity.svg"}
    assert (tmp_path / "similarity.png").stat().st_size > 1000


def test_unpaired_is_never_a_picture_and_another_caption_of_its_own(tmp_path):
    """If every caption of a data set is an example, a picture's captions follow one another."""
    first = EXAMPLES[0]
    doubled = [first, replace(first, id="again", inputs={**first.inputs, "caption": "all is water"})]
    Similarity().build().run(subject("caption", examples=doubled), tmp_path)
    assert json.loads((tmp_path / "similarity.json").read_text())["curves"]["s0"]["unpaired"] is None


def test_padding_and_neighbours_do_not_change_a_state():
    bert = model()
    lengths = [
        replace(entry, inputs={**entry.inputs, "caption": text})
        for entry, text in zip(EXAMPLES, ("cat", "a red cat near", "a", "red"), strict=True)
    ]
    together = start_states(bert, "caption", lengths)
    alone = torch.cat([start_states(bert, "caption", [entry]) for entry in lengths], 1)
    assert torch.allclose(together, alone, atol=1e-5)


def test_similarity_of_a_model_without_pictures_or_with_a_causal_encoder_is_refused_in_one_line(tmp_path):
    texts = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90),
        {"caption": Text()},
        Greedy(),
        texts=TEXTS,
    ).eval()
    causal = model()
    causal.backbone.masks = "causal"
    for network, message in (
        (texts, "needs a picture and a text, but the model reads caption; name two of its inputs with 'inputs'"),
        (causal, "the encoder reads from left to right, so its first slot [CLS] sees no input"),
    ):
        assert refusal(Similarity().build().run, subject("caption", models=[network]), tmp_path) == f"s0: {message}"
