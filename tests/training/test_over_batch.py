"""A loss that compares all rows of an update: one micro-batch, never split; several processes train what one does."""

import json

import pytest
import torch
from kit import toys, views
from kit.processes import several
from kit.training import RecordedProgress, build_trainer, largest_difference, micro_batches, train_step, validation_of

from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import read_tensors

EXAMPLES = toys.examples(40)
VALIDATION = toys.examples(21, seed=1)


def step(objectives=("generator", "views"), **training):
    chosen = {"batch_size": 16, "micro_batch_size": 4, "epochs": 2, "learning_rate": 1e-3, "precision": "fp32"}
    return Step(
        inputs=("caption",), train=("backbone",), objectives=objectives, training=Training(**{**chosen, **training})
    )


def test_the_loss_of_an_update_is_that_of_all_its_rows(tmp_path):
    model, expected = views.model(), views.model()
    learner = build_trainer(model, tmp_path, EXAMPLES, step())
    ((_, batch),) = micros = micro_batches(learner.material)
    record = learner.update(0, micros)
    loss = expected(batch)
    assert record["loss"] == pytest.approx(loss.mean.item(), abs=1e-6)
    assert record["losses"]["views.loss"] == pytest.approx(loss.sums["views.loss"].item() / batch.size, abs=1e-6)


def test_validation_compares_groups_of_a_batch_in_the_order_of_the_data(tmp_path):
    learner = build_trainer(views.model(), tmp_path, EXAMPLES, step(("views",), batch_size=8), VALIDATION)
    collate, sums = learner.material.streams[0].collate, []
    with torch.no_grad():
        for first in (0, 8, 16):
            sums.append(learner.model(collate(VALIDATION[first : first + 8])).sums["views.loss"].item())
    assert validation_of(learner)["validation_loss"] == pytest.approx(sum(sums) / 21, abs=1e-6)


TWO = """
    from pathlib import Path
    from kit import toys, views
    from kit.training import RecordedProgress, validation_of
    from mmgen.data.collate import Source
    from mmgen.training import distributed
    from mmgen.training.train import train
    from test_over_batch import EXAMPLES, VALIDATION, step
    model, accelerator, progress = views.model(dropout=0.3), distributed.start(), RecordedProgress()
    folder = Path("learnt")
    folder.mkdir(exist_ok=True)
    context = toys.context(folder, step(), progress, accelerator=accelerator)
    train(model, context, [Source(EXAMPLES, VALIDATION)])
"""


@pytest.mark.slow
def test_two_processes_train_what_one_does(tmp_path):
    """With dropout, since the only micro-batch has its draws; the second process has nothing to train."""
    done = several(2, tmp_path, TWO)
    assert done.returncode == 0, done.stderr
    single, progress = views.model(dropout=0.3), RecordedProgress()
    expected = train_step(tmp_path / "single", single, step(), EXAMPLES, progress, VALIDATION)
    log = [json.loads(line) for line in (tmp_path / "learnt/log.jsonl").read_text().splitlines()]
    for record, expected_record in zip(log, expected, strict=True):
        for key in ("loss", "grad_norm", "validation_loss"):
            assert record.get(key, 0.0) == pytest.approx(expected_record.get(key, 0.0), rel=1e-5), key
    two = views.model()
    two.load_state_dict(read_tensors(tmp_path / "learnt/weights.safetensors")[0], strict=False)
    assert largest_difference(two, single) < 1e-6
