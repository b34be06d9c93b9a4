"""True or false of two pictures."""

import re
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from kit.objectives import TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions, record, regions
from mmgen_tasks import TrueOrFalse
from mmgen_text import Text

from mmgen.errors import DataError
from mmgen.tensors import All

pytestmark = pytest.mark.slow


class TestTrueOrFalse(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


def pairs_of_pictures(count=6):
    """Examples with two pictures each."""
    return [
        replace(
            example, inputs=example.inputs | {"image": All((example.inputs["image"], record(f"other{n}", 2, 9 + n)))}
        )
        for n, example in enumerate(examples()[:count])
    ]


class TestTwoRows(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0, arrangement="rows")

    def inputs(self):
        return {"question": Text(), "image": regions()}

    def examples(self):
        return pairs_of_pictures()


def test_each_picture_has_a_row_with_the_statement():
    """The loss and the predictions are those of a head over the pooled states of two rows, each encoded by itself."""
    network = model(TrueOrFalse(arrangement="rows"), {"question": Text(), "image": regions()})
    single = model(TrueOrFalse(), {"question": Text(), "image": regions()})
    single.load_state_dict({k: v for k, v in network.state_dict().items() if ".own." not in k}, strict=False)
    pairs, expected = pairs_of_pictures(3), 0.0
    for pair, prediction in zip(pairs, predictions(network, pairs), strict=True):
        rows = [replace(pair, inputs=pair.inputs | {"image": picture}) for picture in pair.inputs["image"].values]
        pooled = [single.backbone.pooled(single.encode(batch_of(single, [row])).states) for row in rows]
        logits = network.objective("own").head(torch.cat(pooled, -1))
        expected = expected + F.cross_entropy(logits, torch.tensor([int(pair.labels["truth"])]))
        assert prediction.value["probabilities"]["True"] == pytest.approx(logits.softmax(-1)[0, 1].item(), abs=1e-4)
    loss = loss_of(network, pairs)
    assert torch.allclose(loss.sums["own.loss"], expected, atol=1e-3) and loss.counts == {"own.loss": 3}


def test_two_rows_need_two_pictures():
    network = model(TrueOrFalse(arrangement="rows"), {"question": Text(), "image": regions()})
    message = (
        "example 'e0': arrangement = \"rows\" needs two pictures in 'image'; give two, or set arrangement = \"row\""
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        batch_of(network, examples()[:1])


def test_truth_of_two_pictures():
    network = model(TrueOrFalse(), {"question": Text(), "image": regions()})
    pairs = pairs_of_pictures(3)
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
