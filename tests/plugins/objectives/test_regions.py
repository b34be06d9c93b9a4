"""Regions that are chosen, and regions of phrases."""

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from kit.objectives import (
    D,
    TaskObjectiveSuite,
    batch_of,
    examples,
    iou,
    loss_of,
    model,
    model_of,
    predictions,
    regions,
    two_pictures,
)
from mmgen_inputs import Text
from mmgen_objectives import MaskedRegions
from mmgen_objectives.tasks import PhraseRegions, RegionChoice, RegionClasses
from mmgen_tasks import BoxAccuracy
from mmgen_vision.regions import plain
from mmgen_vlbert import VlBert, VlBertRegions

from mmgen.examples import Prediction

pytestmark = pytest.mark.slow
ASKED, CAPTIONED = ({name: Text(), "image": regions()} for name in ("question", "caption"))


class TestRegionChoice(TaskObjectiveSuite):
    def config(self):
        return RegionChoice(dropout=0.0)

    def inputs(self):
        return ASKED


@pytest.mark.parametrize("loss", ["bce", "softmax"])
def test_regions_are_right_by_their_overlap(loss):
    network = model(RegionChoice(loss=loss), ASKED)
    examples_used = [*examples(), replace(examples()[0], id="none", labels={"box": (0.95, 0.95, 1.0, 1.0)})]
    expected, count = 0.0, 0
    for example in examples_used:
        boxes = example.inputs["image"].boxes.tolist()
        right = torch.tensor([float(iou(box, example.labels["box"]) >= 0.5) for box in boxes])
        states = network.encode(batch_of(network, [example])).inputs["image"][0, : len(boxes)]
        logits = network.objective("own").head(states).squeeze(-1)
        if loss == "bce":
            expected = expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum")
            count += len(boxes)
        elif right.any():
            expected, count = expected - (logits.log_softmax(-1) * right / right.sum()).sum(), count + 1
    batch_loss = loss_of(network, examples_used)
    assert batch_loss.counts == {"own.loss": count} and (loss == "bce" or count == 6)
    assert torch.allclose(batch_loss.sums["own.loss"], expected, atol=1e-4)
    for prediction, example in zip(predictions(network, examples_used), examples_used, strict=True):
        chosen = example.inputs["image"].boxes[prediction.value["index"]].tolist()
        assert prediction.value["box"] == pytest.approx(chosen, abs=1e-5)


@pytest.mark.parametrize("whole_image", ["mean", "first"])
def test_the_whole_picture_is_chosen_only_where_the_config_says_so(whole_image):
    """Nor is the whole picture a right region in training, although its box may overlap enough."""
    whole = (0.0, 0.0, 1.0, 0.9)
    example = replace(examples()[0], labels={"box": whole, "phrases": ((0, 9, whole),)})
    image = VlBertRegions(width=D, fingerprint={}, fields=("image",), dropout=0.0, whole_image=whole_image)
    first = 0 if whole_image == "first" else 1  # whether a slot in front of the regions is right
    for objective, right in ((RegionChoice(), -100), (RegionChoice(whole_image=True), first), (PhraseRegions(), -100)):
        network = model(objective, {"caption": Text(), "image": image}, VlBert)
        labels = batch_of(network, [example]).targets["own"].labels["right"].flatten().tolist()
        assert labels == [right, *[0] * (2 + first)]
        (prediction,) = predictions(network, [example])
        if isinstance(objective, PhraseRegions):
            boxes = plain(torch.from_numpy(example.inputs["image"].boxes[1 - first :]))
            assert sorted(prediction.value) == sorted(boxes)
        else:
            assert right >= 0 or prediction.value["index"] > 0


@pytest.mark.parametrize("config", [RegionChoice(init_from="regions"), RegionClasses(init_from="regions")])
def test_a_head_is_initialised_from_that_of_masked_regions(config):
    inputs = CAPTIONED | {"image": regions().model_copy(update={"classes": ("cat", "dog")})}
    network = model_of(inputs, {"own": config, "regions": MaskedRegions()})
    objective, source_layer = network.objective("own"), network.objective("regions").hidden_layer()
    assert not torch.equal(source_layer.weight, objective.head[0].weight)
    objective.init_from_model(network)
    assert all(map(torch.equal, source_layer.parameters(), objective.head[0].parameters()))
    published = {f"module.vlbert.mvrc_head.transform.dense.{part}": torch.rand(32) for part in ("weight", "bias")}
    assert [*objective.published(published).values()] == [*published.values()]  # the very tensors


def test_a_prediction_names_the_picture_of_its_region():
    network = model(RegionChoice(), ASKED)
    pairs = two_pictures()
    labels = batch_of(network, pairs).targets["own"].labels["right"]
    assert labels[0].tolist() == [1, 0, 0, 0, 0, 0]  # a box is on the first picture
    assert labels[1].tolist()[:3] == [1, 0, 0]
    with torch.no_grad():
        pair_prediction, single_prediction = predictions(network, pairs)
        best = int(network.objective("own").logits(network, batch_of(network, pairs))[0].argmax())
    assert (pair_prediction.value["index"], pair_prediction.value["picture"]) == (best, best // 3)
    assert "picture" not in single_prediction.value
    predicted = [
        Prediction("pair", {"box": list(pairs[0].labels["box"]), "index": 0, "picture": n}, 1.0) for n in (0, 1)
    ]
    assert BoxAccuracy().build().score(predicted, [pairs[0]] * 2).per_example["accuracy"] == [100.0, 0.0]


class TestPhraseRegions(TaskObjectiveSuite):
    def config(self):
        return PhraseRegions()

    def inputs(self):
        return CAPTIONED


def test_phrases_look_from_their_last_word_piece():
    network = model(PhraseRegions(width=8), CAPTIONED)
    all_examples, expected = examples(), 0.0
    objective = network.objective("own")
    for example in all_examples:
        boxes = example.inputs["image"].boxes.tolist()
        (first, end, box), _ = example.labels["phrases"]  # no region is near the second phrase
        encoded = network.encode(batch_of(network, [example]))
        spans = network.embedders["caption"].describe(example)["spans"]
        last = [slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first][-1]
        assert spans[last][1] == end
        query, keys = objective.query(encoded.inputs["caption"][0, last]), objective.key(encoded.inputs["image"][0])
        shares = (keys @ query / 8**0.5).log_softmax(-1)
        right = [place for place, region in enumerate(boxes) if iou(region, box) >= 0.5]
        expected = expected + sum((1 / len(right)) * (np.log(1 / len(right)) - shares[place]) for place in right)
    loss = loss_of(network, all_examples)
    assert loss.counts == {"own.loss": 6}
    assert torch.allclose(loss.sums["own.loss"], expected.float(), atol=1e-4)
    for prediction, example in zip(predictions(network, all_examples), all_examples, strict=True):
        assert np.allclose(sorted(prediction.value), sorted(example.inputs["image"].boxes.tolist()), atol=1e-5)
    assert prediction.value[0] == pytest.approx(boxes[int(shares.argmax())], abs=1e-5)


def test_a_phrase_that_is_cut_off_has_no_loss():
    network = model(PhraseRegions(), {"caption": Text(max_tokens=2), "image": regions()})
    box = examples()[0].inputs["image"].boxes[1].tolist()
    example = replace(examples()[0], labels={"phrases": ((0, 5, box), (14, 22, box))})
    targets = batch_of(network, [example]).targets["own"]
    assert targets.counts == {"loss": 1} and targets.labels["last"][0, 1] == -100
