"""The model card of an export: its parts, from what a run knows of its step."""

from types import SimpleNamespace

import pytest
from mmgen_encoders import Bert
from mmgen_frcnn import VisualGenome
from mmgen_regions import Detector, Regions, Roi
from mmgen_text import Text

from mmgen.examples import Scores
from mmgen.inference import model_card
from mmgen.inference.model_card import Evaluation, _describe_half_precision, _describe_start


def step(before=None, weights=None):
    return SimpleNamespace(before=before, weights=weights)


@pytest.mark.parametrize(
    ("step", "backbone", "words"),
    [
        (step(before="first"), None, "step 'first'"),
        (step(weights="some/model"), None, "published weights"),
        (step(), SimpleNamespace(weights="bert-base"), "the pretrained encoder"),
        (step(), SimpleNamespace(weights=None), "random weights"),
    ],
)
def test_where_the_step_started(step, backbone, words):
    assert _describe_start(step, backbone) == words


def test_rounding_is_measured_or_said_not_to_be():
    before = Evaluation(scores=Scores({"accuracy": 50.0}))
    assert _describe_half_precision(before, None, {"dtype": "float32"}) == ""
    assert _describe_half_precision(before, None, {"dtype": "bfloat16"}).endswith(
        "The effect on the scores was not measured: no data."
    )
    lines = _describe_half_precision(before, Scores({"accuracy": 48.5}), {"dtype": "bfloat16"}).splitlines()
    assert lines[-1] == "| accuracy |   50.00 |    48.50 |"


def test_an_export_of_an_export_has_no_examples():
    assert model_card._read_evaluation(SimpleNamespace(folder=None, step="a", recipe=None)) == Evaluation()


def test_the_pretrained_weights_of_the_encoder_and_of_networks_are_base_models(tmp_path):
    detector = Detector(model="facebook/detr-resnet-50")
    inputs = {
        "image": Regions(extractor=Roi(model="resnet18.a1_in1k", weights="pretrained", detector=detector)),
        "second": Regions(extractor=Roi(weights="random")),
        "third": Regions(extractor=VisualGenome(weights=tmp_path)),
        "caption": Text(),
    }

    def base_models(weights):
        recipe = SimpleNamespace(backbone=Bert(weights=weights))
        return model_card._base_models(SimpleNamespace(recipe=recipe, names=SimpleNamespace(inputs=inputs)))

    networks = ["timm/resnet18.a1_in1k", "facebook/detr-resnet-50", "unc-nlp/frcnn-vg-finetuned"]
    assert base_models("bert-base-uncased") == ["bert-base-uncased", *networks]
    assert base_models(str(tmp_path)) == base_models("local") == base_models(None) == networks
