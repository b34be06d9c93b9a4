"""Predictions and texts for examples: in their order, in halves when memory is short; those of a split are spread over
processes."""

from types import SimpleNamespace

import pytest
import torch
from kit import toys
from kit.training import RecordedProgress
from kit.writing import assert_same_texts, limit_memory, write_texts

from mmgen.decoding import Decoding
from mmgen.errors import RunError
from mmgen.evaluation import answers as module
from mmgen.examples import Example, Prediction
from mmgen.progress import Progress
from mmgen.storage import generations
from mmgen.training.context import StepContext

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


@pytest.mark.parametrize(("fits", "sizes"), [(2, [2, 1]), (1, [2, 1, 1, 1])])
def test_predictions_are_in_the_order_of_the_examples_and_a_batch_that_does_not_fit_is_halved(model, fits, sizes):
    model.fits = fits
    values = [prediction.value for prediction in module.predict(model, EXAMPLES, "answers", batch_size=2)]
    assert values == ["LONG", "A", "MID"] and model.sizes == sizes and model.training


def test_an_example_that_does_not_fit_is_an_error(model):
    model.fits = 0
    with pytest.raises(RunError, match="out of memory"):
        module.predict(model, EXAMPLES, "answers")
    assert model.training


@pytest.mark.parametrize("world", [1, 2, 3])
def test_every_example_of_a_split_is_answered_once_whatever_the_number_of_processes(
    model, monkeypatch, tmp_path, world
):
    examples = [Example("x" * length, {}) for length in (5, 1, 9, 2, 8, 3, 7)]
    step = SimpleNamespace(inputs=("text",), training=SimpleNamespace(precision="fp32"))
    monkeypatch.setattr(module, "BATCH_SIZE", 2)
    gathered, batches = [], []

    def predicted(model, objective, batch):
        batches.append([len(id_) for id_ in batch.ids])
        return [Prediction(id_, float(torch.rand(1)), 1.0) for id_ in batch.ids]

    def gather(results):  # as if all processes were here
        gathered.extend(results)
        return gathered

    def answered(world):
        gathered.clear()
        for rank in range(world):
            device = torch.device("cpu")
            accelerator = SimpleNamespace(
                num_processes=world,
                process_index=rank,
                is_main_process=rank == world - 1,
                device=device,
                wait_for_everyone=int,
            )
            context = StepContext("s", step, 0, tmp_path, accelerator, Progress())
            module.write_answers(model, context, examples, {generations.PREDICTIONS: "answers"})
        return generations.read_predictions(tmp_path)

    monkeypatch.setattr(module, "predict_with", predicted)
    monkeypatch.setattr(module, "gather_object", gather)
    alone, state = answered(1), torch.get_rng_state()
    assert [result.id for result in alone] == [example.id for example in examples]
    batches.clear()
    assert answered(world) == alone and torch.equal(torch.get_rng_state(), state)  # each batch has its own seed
    assert sorted(length for batch in batches for length in batch) == [1, 2, 3, 5, 7, 8, 9]
    assert all(max(batch) - min(batch) <= 2 for batch in batches)  # of similar length


SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "samples": Decoding(do_sample=True, num_return_sequences=2),
}


@pytest.mark.slow
@pytest.mark.parametrize("search", SEARCHES)
def test_a_run_writes_the_same_texts_in_halves(tmp_path, search):
    model, progress = toys.model(), RecordedProgress()
    expected = write_texts(tmp_path / "whole", model, SEARCHES[search])
    tried = limit_memory(model, most=3)
    assert_same_texts(write_texts(tmp_path / "cut", model, SEARCHES[search], progress), expected)
    assert tried == [8, 4, 2, 2, 2, 2, 2, 2, 1]
    assert progress.lines == ["s: writing: out of memory; from here on 2 examples at a time"]
