"""A step: its end, its best epoch, values that are not finite, and what a killed writer leaves."""

import json
from dataclasses import replace

import pytest
import torch
from kit import toys
from kit.refusals import refusal
from kit.training import RecordedProgress, build_trainer, step, train_step
from safetensors.torch import load_file

from mmgen.errors import RunError
from mmgen.files import clear_partials
from mmgen.storage.weights import read_tensors, state, write_tensors


def test_a_loss_that_is_not_finite_names_its_examples_and_keeps_the_checkpoint(tmp_path):
    model, seen = toys.model(), []
    forward = model.forward

    def spoilt(batch):
        seen.append(batch.ids)
        loss = forward(batch)
        return (
            loss
            if len(seen) < 6
            else replace(loss, sums={name: total * torch.nan for name, total in loss.sums.items()})
        )

    model.forward = spoilt
    said = refusal(train_step, tmp_path / "s", model, step(checkpoint_every=1))
    number = json.loads(read_tensors(tmp_path / "s/checkpoint.safetensors")[1]["cursor"])["done"]
    assert said.startswith(f"step 's', update {number}: the loss is not finite (examples {seen[5][0]}")
    assert said.endswith("); check the data of these examples with `mmgen data check`, or lower learning_rate")
    again = toys.model()
    build_trainer(again, tmp_path / "s")
    assert all(tensor.isfinite().all() for tensor in state(again).values())


def test_a_gradient_that_is_not_finite_stops_too(tmp_path):
    model = toys.model()
    before = {name: tensor.clone() for name, tensor in state(model).items()}
    weight = model.backbone.model.get_input_embeddings().weight
    weight.register_hook(lambda gradient: gradient * torch.inf)
    with pytest.raises(RunError, match=r"update 0: the gradient is not finite \(examples e") as error:
        train_step(tmp_path / "s", model)
    assert "); check the data of these examples with " in str(error.value)
    assert all(tensor.equal(before[name]) for name, tensor in state(model).items())


@pytest.mark.slow
@pytest.mark.parametrize("number", [2, 7])
def test_a_step_of_updates_ends_after_so_many(tmp_path, number):
    """The rate falls to 0 at the last update, which is validated."""
    chosen = step(updates=number, lr_scheduler="linear", warmup_updates=1)
    log = train_step(tmp_path / "s", toys.model(), chosen, validation=toys.examples(3, seed=1))
    assert len(log) == number and "validation_loss" in log[-1]
    assert log[-1]["lr"] == pytest.approx(1e-3 / max(1, number - 1))


LOSSES = (3.0, 2.0, 2.5, 2.0, 1.0, 0.5)  # after each epoch


@pytest.mark.parametrize(("patience", "epochs"), [(1, 3), (2, 4), (None, 6)])
def test_a_step_stops_after_epochs_that_are_not_better(tmp_path, monkeypatch, patience, epochs):
    losses, progress, model, seen = iter(LOSSES), RecordedProgress(), toys.model(), []

    def validated(*_):
        seen.append({name: tensor.clone() for name, tensor in model.state_dict().items()})
        return {"validation_loss": next(losses)}

    monkeypatch.setattr("mmgen.training.train.validate", validated)
    sizes = {"epochs": 6, "checkpoint_every": 1, "batch_size": 60, "micro_batch_size": 60}
    chosen = step(**sizes, keep="best", early_stopping_patience=patience)
    log = train_step(tmp_path / "s", model, chosen, progress=progress, validation=toys.examples(3))
    best, kept = seen[LOSSES.index(min(LOSSES[:epochs]))], load_file(tmp_path / "s/weights.safetensors")
    assert kept and all(tensor.equal(best[name]) for name, tensor in kept.items())
    assert [record["validation_loss"] for record in log if "validation_loss" in record] == [*LOSSES[:epochs]]
    said = f"s: stopped early: {patience} epochs without a lower loss"
    assert progress.lines.count(said) == (epochs < 6)
    assert {path.name for path in (tmp_path / "s").iterdir()} == {"log.jsonl", "weights.safetensors"}


def test_what_a_killed_writer_left_is_cleared(tmp_path):
    """A folder in which safetensors was writing a file."""
    unfinished = tmp_path / "steps/s/.checkpoint.safetensors.7.folder.partial"
    unfinished.mkdir(parents=True)
    (unfinished / ".tmpAb12Cd").write_bytes(b"half")
    leftovers = [
        tmp_path / "steps/s" / name for name in ("checkpoint.safetensors", ".tmp", ".tmpfiles", ".tmpx0y1z2.txt")
    ]
    for path in leftovers:
        path.write_text("")
    clear_partials(tmp_path)
    assert sorted((tmp_path / "steps/s").iterdir()) == sorted(leftovers)


@pytest.mark.parametrize("cursor", ["{", '{"done": 1, "micro_batch_size": 4, "last": {}}'])
def test_a_damaged_checkpoint_is_reported(cursor, tmp_path):
    path = tmp_path / "s/checkpoint.safetensors"
    path.parent.mkdir()
    write_tensors(path, {"model.x": torch.zeros(1)}, {"cursor": cursor})
    said = refusal(train_step, path.parent, toys.model())
    assert said.startswith(f"{path}: the checkpoint does not fit log.jsonl: ")
    assert said.endswith("; delete it to train the step again")
