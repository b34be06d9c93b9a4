"""A step with values that are not finite, or that is stopped: its files, its message, and its resume."""

import json
from dataclasses import replace

import pytest
import torch
from kit import toys
from kit.training import build_trainer, largest_difference, press_ctrl_c, sigterm_before, step, train_step

from mmgen.data.collate import Collator
from mmgen.data.plan import Plan
from mmgen.data.seeds import RngKey
from mmgen.data.sizes import Sizes
from mmgen.errors import RunError
from mmgen.storage.weights import read_tensors, state
from mmgen.training.accumulate import validate

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("spoil", "what"), [(torch.nan, "loss"), (torch.inf, "loss")])
def test_a_loss_that_is_not_finite_names_its_examples_and_keeps_the_checkpoint(tmp_path, spoil, what):
    model, seen = toys.model(), []
    forward = model.forward

    def spoilt(batch):
        seen.append(batch.ids)
        loss = forward(batch)
        return loss if len(seen) < 6 else replace(loss, sums={name: total * spoil for name, total in loss.sums.items()})

    model.forward = spoilt
    with pytest.raises(RunError) as error:
        train_step(tmp_path / "s", model, step(checkpoint_every=1))
    number = json.loads(read_tensors(tmp_path / "s/checkpoint.safetensors")[1]["cursor"])["done"]
    said = str(error.value)
    assert said.startswith(f"step 's', update {number}: the {what} is not finite (examples {seen[5][0]}")
    assert said.endswith("); check the data of these examples with `mmgen data check`, or lower learning_rate")
    again = toys.model()
    build_trainer(again, tmp_path / "s")
    assert all(tensor.isfinite().all() for tensor in state(again).values())


def plan():
    """The plan of `step()`."""
    return Plan([Sizes(toys.examples(20), Collator(toys.model(), ["caption"]))], RngKey(0, "s"), step().training)


def test_a_gradient_that_is_not_finite_stops_too(tmp_path):
    model = toys.model()
    before = {name: tensor.clone() for name, tensor in state(model).items()}
    weight = model.backbone.model.get_input_embeddings().weight
    weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(RunError, match=r"update 0: the gradient is not finite \(examples e") as error:
        train_step(tmp_path / "s", model)
    assert "); check the data of these examples with " in str(error.value)
    assert all(tensor.equal(before[name]) for name, tensor in state(model).items())


@pytest.mark.parametrize("number", [2, 7])
def test_a_step_of_updates_ends_after_so_many(tmp_path, number):
    """The rate falls to 0 at the last update, which is validated."""
    chosen = step(updates=number, lr_scheduler="linear", warmup_updates=1)
    log = train_step(tmp_path / "s", toys.model(), chosen, validation=toys.examples(3, seed=1))
    assert len(log) == number and "validation_loss" in log[-1]
    assert log[-1]["lr"] == pytest.approx(1e-3 / max(1, number - 1))


def test_ctrl_c_waits_for_the_update_and_keeps_it(tmp_path):
    full, stopped = toys.model(), toys.model()
    expected = train_step(tmp_path / "whole", full)
    seen = press_ctrl_c(stopped, 3)
    with pytest.raises(KeyboardInterrupt):
        train_step(tmp_path / "stopped", stopped)
    assert len(whole_updates(plan(), seen)) == done_in(tmp_path / "stopped") < len(expected)  # that one, and no more
    again = toys.model()
    assert train_step(tmp_path / "stopped", again) == expected and largest_difference(again, full) == 0


def whole_updates(plan, passes):
    """The number of updates in this many epochs."""
    sizes, count = [len(plan.update(number, 6)) for number in range(len(plan))], 0
    while sum(sizes[:count]) < len(passes):
        count += 1
    return sizes[:count]


def done_in(folder):
    return json.loads(read_tensors(folder / "checkpoint.safetensors")[1]["cursor"])["done"]


@pytest.mark.parametrize("keep", ["last", "best"])
def test_a_stop_at_an_epochs_end_comes_after_its_validation(tmp_path, monkeypatch, keep):
    """The same log, the same best weights, the same bits."""
    chosen, validation = step(keep=keep, learning_rate=0.05), toys.examples(5, seed=1)
    full, stopped, again, validated = toys.model(dropout=0.3), toys.model(dropout=0.3), toys.model(dropout=0.3), []
    expected = train_step(tmp_path / "whole", full, chosen, validation=validation)
    end = plan().updates_per_epoch
    monkeypatch.setattr("mmgen.training.train.validate", lambda *arguments: validated.append(1) or validate(*arguments))
    with sigterm_before(end - 1), pytest.raises(KeyboardInterrupt):
        train_step(tmp_path / "stopped", stopped, chosen, validation=validation)
    assert len(validated) == 1 and done_in(tmp_path / "stopped") == end
    assert train_step(tmp_path / "stopped", again, chosen, validation=validation) == expected and len(validated) == 2
    assert largest_difference(again, full) == 0
    assert {path.name for path in (tmp_path / "stopped").iterdir()} == {"log.jsonl", "weights.safetensors"}
