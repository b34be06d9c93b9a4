"""The probes: compared with the papers' definitions, with heads set by hand, and from the command line on a toy run."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.probes import EXAMPLES, FACTS, Pictured, model, subject
from mmgen_inputs import Text
from mmgen_probes import Grounding
from mmgen_probes.grounding import attention

from mmgen import DataError, UnavailableError
from mmgen.model import compose
from mmgen.testing.toy import TEXTS

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
    with pytest.raises(UnavailableError) as error:
        Grounding().build().run(subject("image"), tmp_path)
    assert str(error.value) == "s0: reads image; grounding needs regions with boxes and a caption"
    with pytest.raises(DataError) as error:
        Grounding().build().run(subject("image caption", examples=[replace(EXAMPLES[0], facts={})]), tmp_path)
    assert str(error.value) == (
        "annotations: the data set has no boxes for the captions' phrases; name a folder of Flickr30k Entities"
    )


def test_an_input_that_an_objective_makes_is_left_out(tmp_path):
    """A step that was pretrained with a second caption is looked into with the first."""
    inputs = {**Pictured().inputs(), "second": Text(fields=("second",), token_type=1)}
    bert = compose(Pictured().backbone_config(), inputs, Pictured().generator_config(), texts=TEXTS).eval()
    result = Grounding(active_threshold=0).build().run(subject("image caption second", models=[bert]), tmp_path)
    alone = Grounding(active_threshold=0).build().run(subject("image caption", models=[bert]), tmp_path)
    assert result == alone
