"""Optimisers, rates, clipping and frozen parameters: each compared with a direct implementation, and resumed to the
bit."""

from dataclasses import replace
from typing import Literal

import pytest
import torch
from kit import toys
from kit.training import step, train_step
from mmgen_generators import Masked

from mmgen.configs import EmbedderConfig
from mmgen.data.collate import Collator
from mmgen.data.plan import Plan
from mmgen.data.seeds import RngKey
from mmgen.data.sizes import Sizes
from mmgen.errors import RunError
from mmgen.model import compose
from mmgen.parts import Embedder
from mmgen.recipe.tables import Step, Training
from mmgen.storage.weights import state
from mmgen.testing.tiny import Tiny
from mmgen.testing.toy import TEXTS, Toy, Words
from mmgen.training.optimizer import clip, make_optimizer, schedule, set_learning

SIZES = Sizes(toys.examples(4, most_questions=1), Collator(toys.model(), ["caption"]))
PLAN = Plan([SIZES], RngKey(0, "s"), Training(batch_size=1, updates=10, length_bucket=1))  # epochs of 4 updates
SGD = {"optimizer": "sgd", "momentum": 0.9, "weight_decay": 0.1, "learning_rate": 0.5}
BERT = {"bias_correction": False, "eps": 1e-6, "betas": (0.8, 0.99), "weight_decay": 0.1, "learning_rate": 0.5}


@pytest.mark.parametrize(
    ("training", "expected"),
    [
        ({}, [1, 1, 8 / 9, 7 / 9, 6 / 9, 5 / 9, 4 / 9, 3 / 9, 2 / 9, 1 / 9]),
        ({"warmup_updates": 4}, [0.25, 0.5, 0.75, 1, 1, 5 / 6, 4 / 6, 3 / 6, 2 / 6, 1 / 6]),
        ({"warmup_updates": 4, "lr_scheduler": "none"}, [0.25, 0.5, 0.75, 1, 1, 1, 1, 1, 1, 1]),
        ({"warmup_ratio": 0.2, "lr_scheduler": "none"}, [0.5, 1, 1, 1, 1, 1, 1, 1, 1, 1]),
        ({"warmup_ratio": 0, "lr_scheduler": "steps", "lr_milestones": (1, 2)}, [1] * 4 + [0.1] * 4 + [0.01] * 2),
        (
            {"warmup_updates": 2, "lr_scheduler": "steps", "lr_milestones": (0.5, 2), "lr_gamma": 0.5},
            [0.5, 1, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25],
        ),
    ],
)
def test_rates(training, expected):
    assert [schedule(PLAN, update, Training(**training)) for update in range(10)] == pytest.approx(expected)


def learning(**training):
    """A weight, a bias, and their optimiser."""
    torch.manual_seed(0)
    parameters = {"backbone.w": torch.nn.Parameter(torch.randn(3, 2)), "backbone.b": torch.nn.Parameter(torch.randn(3))}
    chosen = Step(inputs=("caption",), train=("backbone",), training=Training(**training))
    return parameters, make_optimizer(parameters, chosen)


def written_out(parameters, training, updates):
    """The papers' optimisers on the same gradients, in float64."""
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


@pytest.mark.slow
def test_what_is_frozen_by_name_stays_to_the_bit(tmp_path):
    model = toys.model()
    before = {name: tensor.clone() for name, tensor in state(model).items()}
    train_step(tmp_path / "s", model, step(freeze=("*.LayerNorm.*", "backbone.model.bert.embeddings.position_*")))
    same = {name for name, tensor in state(model).items() if tensor.equal(before[name])}
    names = dict(model.named_parameters()).keys()
    frozen_names = {name for name in names if ".LayerNorm." in name or ".position_embeddings." in name}
    assert same & names == frozen_names and len(frozen_names) == 13
    set_learning(model, step())  # the next step learns them again
    assert all(parameter.requires_grad for parameter in model.parameters())


def test_a_step_that_freezes_all_it_trains_is_a_mistake(tmp_path):
    with pytest.raises(RunError, match="trains backbone has no trainable parameters that training.freeze leaves$"):
        train_step(tmp_path, toys.model(), step(freeze=("*",)))


class HalfFrozen(EmbedderConfig):
    """Scaled word embeddings; the author froze the scale and the statistics of a normalisation."""

    type: Literal["half_frozen"] = "half_frozen"

    def build(self, backbone):
        return HalfFrozenEmbedder(Words(fields=self.fields).build(backbone), backbone.input_size)


class HalfFrozenEmbedder(Embedder):
    def __init__(self, words, width):
        super().__init__()
        self.reader, self.words = words.reader, words
        self.scale, self.norm = torch.nn.Linear(width, width, bias=False), torch.nn.BatchNorm1d(width)
        torch.nn.init.ones_(self.scale.weight)
        self.scale.requires_grad_(False)
        self.norm.requires_grad_(False)
        self.shift = torch.nn.Parameter(torch.zeros(width))

    def forward(self, **collated):
        segment = self.words(**collated)
        states = self.norm(self.scale(segment.states).flatten(0, 1)).view_as(segment.states)
        return replace(segment, states=states + self.shift)


def test_what_a_part_froze_stays_frozen(tmp_path):
    """Whether the part trains, is frozen in one step and trains in the next, or neither."""
    torch.manual_seed(0)
    model = compose(Tiny(width=32), {"caption": HalfFrozen()}, Masked(max_tokens=9), texts=TEXTS)
    assert model.frozen == {f"embedders.caption.{name}" for name in ("scale.weight", "norm.weight", "norm.bias")}
    before = {name: tensor.clone() for name, tensor in state(model).items()}
    for number, train in enumerate((("caption", "backbone"), ("backbone",), ("caption",))):
        chosen = step().model_copy(update={"train": train})
        train_step(tmp_path / str(number), model, chosen, examples=Toy().build().split("train"))
    same = {name for name, tensor in state(model).items() if tensor.equal(before[name])}
    frozen = model.frozen | {f"embedders.caption.norm.{name}" for name in ("running_mean", "running_var")}
    assert same == frozen | {"embedders.caption.norm.num_batches_tracked"}
    assert (model.embedders["caption"].scale.weight == 1.0).all()


@pytest.mark.slow
def test_parameters_have_rates_of_their_own(tmp_path):
    """The longest matching pattern counts; other parameters keep their rates, and the log has the highest."""
    names = ("backbone.encoder.0.weight", "backbone.encoder.1.weight", "embedders.image.w", "embedders.image.b")
    parameters = {name: torch.nn.Parameter(torch.zeros(2, 2)) for name in names}
    patterns = {"backbone.*": 1e-3, "*.encoder.1.*": 1e-4, "*.b": 1e-5, "*.unused": 1.0}
    training = Training(learning_rate=0.1, input_learning_rate=0.2, learning_rates=patterns)
    chosen = Step(inputs=("image",), train=("image", "backbone"), training=training)
    optimizer = make_optimizer(parameters, chosen)
    peaks = {id(p): group["peak"] for group in optimizer.param_groups for p in group["params"]}
    assert [peaks[id(parameter)] for parameter in parameters.values()] == [1e-3, 1e-4, 0.2, 1e-5]
    log = train_step(tmp_path, toys.model(), step(lr_scheduler="none", learning_rates={"*.LayerNorm.*": 1e-2}))
    assert log[-1]["lr"] == 1e-2


def test_a_frozen_part_has_no_dropout():
    model = toys.model(dropout=0.5)
    set_learning(model, Step(inputs=("caption",), train=("caption",), training=Training()))
    assert not any(module.training for module in model.backbone.modules())
    set_learning(model, step())
    assert all(module.training for module in model.backbone.modules())
