"""True or false of two pictures."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from kit.objectives import TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions, record, regions
from mmgen_tasks import TrueOrFalse
from mmgen_text import Text

from mmgen.tensors import All

pytestmark = pytest.mark.slow


class TestTrueOrFalse(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


def test_truth_of_two_pictures():
    network = model(TrueOrFalse(), {"question": Text(), "image": regions()})
    pairs = [
        replace(example, inputs=example.inputs | {"image": All((example.inputs["image"], record("other", 2, 9)))})
        for example in examples()[:3]
    ]
    loss, expected = loss_of(network, pairs), 0.0
    for pair in pairs:
        states = network.encode(batch_of(network, [pair])).states
        logits = network.objective("own").head(network.backbone.pooled(states))
        expected = expected + F.cross_entropy(logits, torch.tensor([int(pair.labels["truth"])]))
    assert torch.allclose(loss.sums["own.loss"], expected, atol=1e-4) and loss.counts == {"own.loss": 3}
    for prediction in predictions(network, pairs):
        assert prediction.value["label"] == max(
            prediction.value["probabilities"], key=prediction.value["probabilities"].get
        )
        assert sum(prediction.value["probabilities"].values()) == pytest.approx(1)
