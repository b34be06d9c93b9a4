"""Regions of phrases: one attention head from a phrase's last word piece."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.objectives import (
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
from mmgen_tasks import PhraseRegions
from mmgen_text import Text

from mmgen.errors import DataError

pytestmark = pytest.mark.slow


class TestPhraseRegions(TaskObjectiveSuite):
    def config(self):
        return PhraseRegions()

    def inputs(self):
        return {"caption": Text(), "image": regions()}


def test_phrases_of_two_pictures_are_refused():
    network = model(PhraseRegions(), {"caption": Text(), "image": regions()})
    with pytest.raises(
        DataError, match="example 'pair' shows several pictures, but a phrase's boxes belong to one picture"
    ):
        batch_of(network, two_pictures())


def test_phrases_look_from_their_last_word_piece():
    network = model(PhraseRegions(width=8), {"caption": Text(), "image": regions()})
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
