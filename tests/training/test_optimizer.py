"""Optimisers, rates, clipping and frozen parameters: each against what is written out here, and resumed to the bit."""

import json
import re

import pytest
import torch
from kit import toys
from kit.training import largest_difference, step, train_step

from mmgen.data.plan import Plan
from mmgen.errors import RunError
from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import state
from mmgen.training.learner import Learner
from mmgen.training.optimizer import clip, frozen, make_optimizer, schedule, set_learning

PLAN = Plan(seed=0, step="s", updates=((),) * 10, epochs=(4, 7, 10))  # epochs of 4, 3 and 3 updates
SGD = {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1, "learning_rate": 0.5}
BERT = {"bias_correction": False, "eps": 1e-6, "betas": (0.8, 0.99), "weight_decay": 0.1, "learning_rate": 0.5}


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({}, [1, 1, 8 / 9, 7 / 9, 6 / 9, 5 / 9, 4 / 9, 3 / 9, 2 / 9, 1 / 9]),
        ({"warmup_updates": 4}, [0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        ({"warmup_updates": 4, "lr_scheduler": "none"}, [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1]),
        ({"warmup_ratio": 0.2, "lr_scheduler": "none"}, [0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ({"warmup_ratio": 0, "lr_scheduler": "steps", "lr_milestones": (1, 2)}, [1] * 4 + [0.1] * 3 + [0.01] * 3),
        (
            {"warmup_updates": 2, "lr_scheduler": "steps", "lr_milestones": (0.5, 2), "lr_gamma": 0.5},
            [0.5, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25],
        ),
    ],
)
def test_rates(training, expected):
    assert [schedule(PLAN, update, Training(**training)) for update in range(10)] == pytest.approx(expected)


def learning(**training):
    """A weight, a bias of it, and their optimiser."""
    torch.manual_seed(0)
    parameters = {"backbone.w": torch.nn.Parameter(torch.randn(3, 2)), "backbone.b": torch.nn.Parameter(torch.randn(3))}
    chosen = Step(inputs=("caption",), train=("backbone",), training=Training(**training))
    return parameters, make_optimizer(parameters, chosen)


def written_out(parameters, training, updates):
    """What the papers' optimisers make of the same gradients, in float64."""
    (slow, slower), moments = training.betas, {}
    weights = {name: parameter.detach().double().clone() for name, parameter in parameters.items()}
    for gradients in updates:
        for name, gradient in gradients.items():
            w, decay = weights[name], training.weight_decay if weights[name].ndim > 1 else 0.0
            mean, square = moments.get(name, (torch.zeros_like(w), torch.zeros_like(w)))
            if training.optimizer == "sgd":
                mean = training.momentum * mean + gradient.double() + decay * w
                weights[name] = w - training.learning_rate * mean
            else:
                mean = slow * mean + (1 - slow) * gradient.double()
                square = slower * square + (1 - slower) * gradient.double() ** 2
                weights[name] = w - training.learning_rate * (mean / (square.sqrt() + training.eps) + decay * w)
            moments[name] = mean, square
    return weights


@pytest.mark.parametrize("training", [SGD, BERT, {**SGD, "momentum": 0.0}])
def test_updates_are_those_that_are_written_out(training):
    parameters, optimizer = learning(**training)
    updates = [{name: torch.randn_like(p) for name, p in parameters.items()} for _ in range(4)]
    expected = written_out(parameters, Training(**training), updates)
    for gradients in updates:
        for name, parameter in parameters.items():
            parameter.grad = gradients[name].clone()
        optimizer.step()
    for name, parameter in parameters.items():
        assert (parameter.double() - expected[name]).abs().max() < 1e-5, name


def test_betas_and_eps_are_adams():
    _, optimizer = learning(betas=(0.8, 0.95), eps=1e-6)
    assert {(group["betas"], group["eps"]) for group in optimizer.param_groups} == {((0.8, 0.95), 1e-6)}


def with_gradients(*gradients):
    parameters = [torch.nn.Parameter(torch.zeros(2)) for _ in gradients]
    for parameter, gradient in zip(parameters, gradients, strict=True):
        parameter.grad = torch.tensor(gradient) if gradient else None
    return parameters


def test_gradients_are_clipped_together_or_each():
    together = with_gradients((3.0, 4.0), (0.0, 0.5), None)
    record = clip(together, Training(max_grad_norm=1.0))
    assert record == {"grad_norm": pytest.approx((25 + 0.25) ** 0.5), "clipped": True}
    assert together[1].grad[1] == pytest.approx(0.5 / record["grad_norm"], rel=1e-4)
    separate = with_gradients((3.0, 4.0), (0.0, 0.5), None)
    assert clip(separate, Training(max_grad_norm=1.0, clip="each")) == {
        "grad_norm": record["grad_norm"],
        "clipped": 0.5,
    }
    assert separate[0].grad.tolist() == pytest.approx([0.6, 0.8], rel=1e-4)
    assert separate[1].grad.tolist() == [0.0, 0.5] and separate[2].grad is None
    assert "clipped" not in clip(separate, Training(max_grad_norm=None, clip="each"))
    untouched = [torch.nn.Parameter(torch.ones(2))]  # nothing was to be predicted
    for how, record in (("whole", False), ("each", 0.0)):
        assert clip(untouched, Training(max_grad_norm=1.0, clip=how)) == {"grad_norm": 0.0, "clipped": record}


def test_the_log_says_rates_and_what_was_clipped(tmp_path):
    chosen = step(
        **{**SGD, "learning_rate": 1e-3}, clip="each", lr_scheduler="steps", lr_milestones=(1,), warmup_updates=2
    )
    log = train_step(tmp_path, toys.model(), chosen)
    second = [record["lr"] for record in log if record["epoch"] >= 1]
    assert log[0]["lr"] == pytest.approx(5e-4) and second == pytest.approx([1e-4] * len(second)) and second
    assert all(0 <= record["clipped"] <= 1 for record in log) and any(0 < record["clipped"] < 1 for record in log)
    of_last = [record["clipped"] for record in log if record["epoch"] >= 1]
    assert log[-1]["epoch_clipped"] == sum(of_last) / len(of_last)


@pytest.mark.parametrize(
    "training", [{**SGD, "learning_rate": 1e-2, "clip": "each"}, {**BERT, "learning_rate": 1e-3}], ids=["sgd", "bert"]
)
@pytest.mark.slow
def test_a_resume_gives_the_same_bits(tmp_path, monkeypatch, training):
    chosen = step(**training, checkpoint_every=1, freeze=("*.LayerNorm.*",))
    full, stopped, again = (toys.model(dropout=0.3) for _ in range(3))
    expected = train_step(tmp_path / "whole", full, chosen)
    update = Learner.update

    def stops(learner, number, *arguments, **more):
        if number == 3:
            raise KeyError("as good as a kill")
        return update(learner, number, *arguments, **more)

    with monkeypatch.context() as patch, pytest.raises(KeyError):
        patch.setattr(Learner, "update", stops)
        train_step(tmp_path / "stopped", stopped, chosen)
    assert train_step(tmp_path / "stopped", again, chosen) == expected and largest_difference(again, full) == 0


def test_what_is_frozen_by_name_stays_to_the_bit(tmp_path):
    model = toys.model()
    before = {name: tensor.clone() for name, tensor in state(model).items()}
    train_step(tmp_path / "s", model, step(freeze=("*.LayerNorm.*", "backbone.model.bert.embeddings.position_*")))
    same = {name for name, tensor in state(model).items() if tensor.equal(before[name])}
    names = {name for name, _ in model.named_parameters()}
    frozen_names = {name for name in names if ".LayerNorm." in name or ".position_embeddings." in name}
    assert same & names == frozen_names and len(frozen_names) == 13
    set_learning(model, step())  # the next step learns them again
    assert all(parameter.requires_grad for parameter in model.parameters())


@pytest.mark.parametrize(
    ("pattern", "suggestion"),
    [
        ("*.LayrNorm.*", "; did you mean 'LayerNorm'?"),
        ("*wrd_embeddings*", "; did you mean 'word_embeddings'?"),
        ("backbone.model.bert.embedings.*", "; did you mean 'backbone.model.bert.embeddings'?"),
        ("backbone.model.bert.embeddings", "; did you mean 'backbone.model.bert.embeddings.*'?"),
        ("*nothing like it*", ""),
    ],
)
def test_a_pattern_that_freezes_nothing_is_a_mistake(pattern, suggestion):
    said = f"training.freeze: no parameter is called '{pattern}'{suggestion}"
    with pytest.raises(RunError, match=f"^{re.escape(said)}$"):
        frozen(toys.model(), ("*.bias", pattern))


def test_a_step_that_freezes_all_it_learns_is_a_mistake(tmp_path):
    with pytest.raises(RunError, match="trains backbone has no trainable parameters that training.freeze leaves$"):
        train_step(tmp_path, toys.model(), step(freeze=("*",)))


@pytest.mark.slow
def test_a_later_steps_pattern_is_a_mistake_before_the_first_learns(tmp_path):
    steps = {
        "first": {"inputs": ["caption"], "train": ["backbone"]},
        "second": {"inputs": ["caption"], "train": ["backbone"], "start": "first", "training": {"freeze": ["*poler*"]}},
    }
    (tmp_path / "toy.toml").write_text(toys.recipe(steps=steps))
    done = toys.mmgen_here(tmp_path, "run", "toy.toml")
    assert done.returncode == 1
    assert "step 'second': training.freeze: no parameter is called '*poler*'" in done.stderr
    assert not list((tmp_path / toys.PLACE).glob("steps/*/*"))
    assert json.loads((tmp_path / toys.PLACE / "recipe.json").read_text())["steps"]["second"]["training"]["freeze"] == [
        "*poler*"
    ]
