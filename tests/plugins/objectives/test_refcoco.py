"""The chosen region: objective, scores and card."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kit.judged import BOXES, EXPRESSIONS, FAR, Judges, predictions_of
from kit.objectives import (
    WORDS,
    D,
    TaskObjectiveSuite,
    batch_of,
    examples,
    iou,
    loss_of,
    model,
    predictions,
    regions,
    two_pictures,
)
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_objectives import MaskedRegions
from mmgen_objectives.tasks import PhraseRegions, RegionChoice
from mmgen_tasks import BoxAccuracy, RegionCard
from mmgen_vision.regions import plain
from mmgen_vlbert import VlBert, VlBertRegions

from mmgen.cards import Card
from mmgen.examples import Example, Prediction
from mmgen.model import Objectives, compose
from mmgen.parts import Record
from mmgen.testing import RendererSuite


@pytest.mark.slow
class TestRegionChoice(TaskObjectiveSuite):
    def config(self):
        return RegionChoice(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_regions_are_right_by_their_overlap(loss):
    network = model(RegionChoice(loss=loss), {"question": Text(), "image": regions()})
    examples_used = [*examples(), replace(examples()[0], id="none", labels={"box": (0.95, 0.95, 1.0, 1.0)})]
    expected, count = 0.0, 0
    for example in examples_used:
        boxes = example.inputs["image"].boxes.tolist()
        right = torch.tensor([float(iou(box, example.labels["box"]) >= 0.5) for box in boxes])
        states = network.encode(batch_of(network, [example])).inputs["image"][0, : len(boxes)]
        logits = network.objective("own").head(states).squeeze(-1)
        if loss == "bce":
            expected, count = (
                expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum"),
                count + len(boxes),
            )
        elif right.any():
            expected, count = expected - (logits.log_softmax(-1) * right / right.sum()).sum(), count + 1
    batch_loss = loss_of(network, examples_used)
    assert batch_loss.counts == {"own.loss": count} and (loss == "bce" or count == 6)
    assert torch.allclose(batch_loss.sums["own.loss"], expected, atol=1e-4)
    for prediction, example in zip(predictions(network, examples_used), examples_used, strict=True):
        assert prediction.value["box"] == pytest.approx(
            example.inputs["image"].boxes[prediction.value["index"]].tolist(), abs=1e-5
        )


@pytest.mark.slow
def test_an_overlap_of_half_is_right():
    network = model(RegionChoice(), {"question": Text(), "image": regions()})
    record = Record("p", np.zeros((2, D), np.float32), np.array([[0, 0, 1, 0.5], [0, 0, 1, 0.49]], np.float32))
    example = replace(examples()[0], inputs={"question": "what", "image": record}, labels={"box": (0.0, 0.0, 1.0, 1.0)})
    assert batch_of(network, [example]).targets["own"].labels["right"].tolist() == [[1, 0]]


WHOLE = {"fields": ("image",), "width": D, "fingerprint": {"extractor": "toy"}, "dropout": 0.0}


@pytest.mark.slow
@pytest.mark.parametrize("whole_image", ["mean", "first"])
def test_the_whole_picture_is_chosen_only_where_the_config_says_so(whole_image):
    """Nor is the whole picture a right region in training, although its box may overlap enough."""
    example = replace(examples()[0], labels={"box": (0.0, 0.0, 1.0, 0.9), "phrases": ((0, 9, (0.0, 0.0, 1.0, 0.9)),)})
    inputs = {"caption": Text(), "image": VlBertRegions(**WHOLE, whole_image=whole_image)}
    for objective in (RegionChoice(), RegionChoice(whole_image=True), PhraseRegions()):
        network = model(objective, inputs, VlBert)
        labels = batch_of(network, [example]).targets["own"].labels["right"].flatten().tolist()
        with_whole = getattr(objective, "whole_image", False)
        assert len(labels) == 3 + (whole_image == "mean") and labels[1:] == [0] * (len(labels) - 1)
        assert labels[0] == ((0 if whole_image == "first" else 1) if with_whole else -100)
        (prediction,) = predictions(network, [example])
        if isinstance(objective, PhraseRegions):
            boxes = plain(torch.from_numpy(example.inputs["image"].boxes[whole_image == "first" :]))
            assert sorted(prediction.value) == sorted(boxes)
            continue
        with torch.no_grad():
            logits = network.objective("own").logits(network, batch_of(network, [example], predicting=True))
        assert logits.isinf().tolist()[0] == [not with_whole] + [False] * (len(labels) - 1)
        assert with_whole or prediction.value["index"] > 0


@pytest.mark.slow
def test_a_picture_without_regions_is_chosen_as_a_whole():
    picture = replace(
        examples()[0].inputs["image"], features=np.ones((1, D), np.float32), boxes=np.array([[0, 0, 1, 1.0]])
    )
    example = replace(
        examples()[0], inputs={"caption": "a cat", "image": picture}, labels={"box": (0.0, 0.0, 1.0, 0.9)}
    )
    inputs = {"caption": Text(), "image": VlBertRegions(**WHOLE, whole_image="first")}
    for loss in ("bce", "softmax"):
        network = model(RegionChoice(loss=loss), inputs, VlBert)
        loss_of(network, [example]).mean.backward()
        assert all(p.grad is None or p.grad.isfinite().all() for p in network.parameters())
        assert predictions(network, [example])[0].value["index"] == 0


@pytest.mark.slow
def test_the_head_is_initialised_from_that_of_masked_regions():
    inputs = {"caption": Text(), "image": regions()}
    torch.manual_seed(0)
    network = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90),
        {**inputs, "image": inputs["image"].model_copy(update={"classes": ("cat", "dog")})},
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"own": RegionChoice(init_from="regions"), "regions": MaskedRegions()}),
    )
    source_layer, head_layer = network.objective("regions").hidden_layer(), network.objective("own").head[0]
    assert not torch.equal(source_layer.weight, head_layer.weight)
    network.objective("own").init_from_model(network)
    assert torch.equal(source_layer.weight, head_layer.weight) and torch.equal(source_layer.bias, head_layer.bias)
    published_weights = {
        f"module.vlbert.mvrc_head.transform.dense.{part}": torch.rand(32, 32) for part in ("weight", "bias")
    }
    assert set(network.objective("own").published(published_weights)) == {"head.0.weight", "head.0.bias"}


@pytest.mark.slow
def test_the_head_applies_dropout_before_its_last_layer():
    head = model(RegionChoice(), {"question": Text(), "image": regions()}).objective("own").head
    assert [type(layer).__name__ for layer in head] == ["Linear", "GELU", "Dropout", "Linear"]


@pytest.mark.slow
def test_a_prediction_names_the_picture_of_its_region():
    network = model(RegionChoice(), {"question": Text(), "image": regions()})
    pairs = two_pictures()
    labels = batch_of(network, pairs).targets["own"].labels["right"]
    assert labels[0].tolist() == [1, 0, 0, 0, 0, 0] and labels[1].tolist()[:3] == [
        1,
        0,
        0,
    ]  # a box is on the first picture
    with torch.no_grad():
        (pair_prediction, single_prediction), logits = (
            predictions(network, pairs),
            network.objective("own").logits(network, batch_of(network, pairs)),
        )
    assert (
        pair_prediction.value["index"] == int(logits[0].argmax())
        and pair_prediction.value["picture"] == pair_prediction.value["index"] // 3
    )
    assert "picture" not in single_prediction.value
    predicted = [
        Prediction("pair", {"box": list(pairs[0].labels["box"]), "index": 0, "picture": n}, 1.0) for n in (0, 1)
    ]
    assert BoxAccuracy().build().score(predicted, [pairs[0]] * 2).per_example["accuracy"] == [100.0, 0.0]


class TestBoxAccuracy(Judges):
    scored_examples = EXPRESSIONS

    def config(self):
        return BoxAccuracy()

    def value(self, n, example):
        return {"box": list(BOXES[0]), "index": 0}


def test_an_overlap_of_exactly_a_half_is_right():
    example = Example("r", {}, labels={"box": (0.1, 0.1, 0.7, 0.4)})
    for box, percent in (((0.1, 0.1, 0.4, 0.4), 100), ((0.1, 0.1, 0.399, 0.4), 0)):
        assert BoxAccuracy().build().score(predictions_of([{"box": box}], [example]), [example]).values == {
            "accuracy": percent
        }


def test_right_boxes_and_the_box_that_is_right_most_often():
    scores = BoxAccuracy().build().score(predictions_of([{"box": BOXES[0], "index": 4}] * 3, EXPRESSIONS), EXPRESSIONS)
    assert scores.per_example["accuracy"] == [100, 0, 100]
    assert BoxAccuracy().build().references(EXPRESSIONS).values == {"chance_accuracy": pytest.approx(200 / 3)}


def test_columns_by_a_fact():
    examples = [replace(e, facts={"combination": "unseen" if n else "seen"}) for n, e in enumerate(EXPRESSIONS)]
    predicted = predictions_of([{"box": BOXES[0]}, {"box": BOXES[1]}, {"box": FAR}], examples)
    values = BoxAccuracy(by=["combination"]).build().score(predicted, examples).values
    assert values == {"accuracy": pytest.approx(200 / 3), "seen": 100, "unseen": 50}


LEFT = (0.0, 0.0, 0.5, 0.5)


@pytest.mark.parametrize(
    "value, line, right",
    [
        ({"box": [0, 0, 0.25, 0.5], "index": 3}, "overlap 50\u202f%", True),
        ({"box": [0, 0, 0.24, 0.5], "index": 3}, "overlap 48\u202f%", False),
        ({"box": [0, 0, 0.5, 0.5], "index": 3, "picture": 0}, "overlap 100\u202f%", True),
        ({"box": [0, 0, 0.5, 0.5], "index": 3, "picture": 1}, "a region of picture 2", False),
    ],
)
def test_refcoco_shows_the_overlap_with_the_right_box(value, line, right):
    example = Example("r", {"expression": "left"}, (), {}, {"box": LEFT})
    card = RegionCard().card(example, Prediction("r", value, 0.25))
    assert card == Card(line=line, confidence=0.25, right=right, box=tuple(value["box"]), right_box=LEFT)


def test_refcoco_without_the_right_box_and_in_the_terminal():
    prediction = Prediction("r", {"box": [0, 0.25, 0.5, 1], "index": 3}, 0.25)
    card = RegionCard().card(Example("r", {}), prediction)
    assert card == Card(line="a region", confidence=0.25, box=(0, 0.25, 0.5, 1))
    assert RegionCard().line(Example("r", {}), prediction) == "[0.000, 0.250, 0.500, 1.000]"


class TestChosenRegion(RendererSuite):
    def config(self):
        return RegionCard()

    def examples(self):
        return [Example("r", {"expression": "left"}, (), {}, {"box": LEFT})]

    def predictions(self, examples):
        return [Prediction("r", {"box": [0, 0, 1, 0.5], "index": 0}, 0.5)]
