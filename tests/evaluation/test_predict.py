"""Predictions for examples: in their order, with the mode of the model unchanged, in halves when memory is short."""

import pytest
import torch

from mmgen.errors import RunError
from mmgen.evaluation import predict as module
from mmgen.tensors import Example, Prediction

EXAMPLES = [Example(name, {}) for name in ("long", "a", "mid")]


class Reads:
    """A collator whose examples take as many slots as their ids have letters."""

    halves = None

    def __init__(self, *_, **__):
        pass

    def slots(self, examples):
        return [len(example.id) for example in examples]

    def __call__(self, examples):
        return Batch([example.id for example in examples])


class Batch:
    def __init__(self, ids):
        self.ids = ids

    def to(self, device):
        return self


@pytest.fixture
def model(monkeypatch):
    model = torch.nn.Linear(1, 1).train()
    model.inputs, model.device, model.sizes = ("text",), "cpu", []
    monkeypatch.setattr(module, "Collator", Reads)

    def predicted(model, objective, batch):
        assert not model.training and objective == "answers"
        model.sizes.append(len(batch.ids))
        if len(batch.ids) > model.fits:
            raise torch.OutOfMemoryError
        return [Prediction(name, name.upper(), 1.0) for name in batch.ids]

    monkeypatch.setattr(module, "predict_with", predicted)
    return model


def test_predictions_are_in_the_order_of_the_examples(model):
    model.fits = 2
    values = [prediction.value for prediction in module.predict(model, EXAMPLES, "answers", batch_size=2)]
    assert values == ["LONG", "A", "MID"] and model.sizes == [2, 1] and model.training


def test_a_batch_that_does_not_fit_is_halved(model):
    model.fits = 1
    values = [prediction.value for prediction in module.predict(model, EXAMPLES, "answers", batch_size=2)]
    assert values == ["LONG", "A", "MID"] and max(model.sizes) == 2 and model.sizes.count(1) == 3


def test_an_example_that_does_not_fit_is_an_error(model):
    model.fits = 0
    with pytest.raises(RunError, match="out of memory"):
        module.predict(model, EXAMPLES, "answers")
    assert model.training
