"""Objectives: what is wrong with a loss or gradients, and layers that start from others."""

import torch
from torch import nn

from mmgen.objectives import gradient_problem, loss_problem, published_layer
from mmgen.tensors import Loss


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(2, 1)


def test_a_loss_has_a_sum_for_every_count():
    total = torch.zeros(())
    assert loss_problem(Loss({"words": total}), ["words"]) == ""
    for wrong in (Loss({"words": total}), Loss({"words": torch.zeros(2)}), total):
        names = ["words", "other"] if wrong is not total else ["words"]
        assert loss_problem(wrong, names).endswith(f", not a Loss with a sum () for {', '.join(map(repr, names))}")


def test_a_loss_reaches_only_what_is_trained():
    head, stranger = Head(), torch.ones(2, requires_grad=True)
    output = head.dense(torch.ones(1, 2)).sum()
    assert gradient_problem(head, [output], head.parameters()) == ""
    assert gradient_problem(head, [output.detach()], head.parameters()) == (
        "forward returns a loss without a gradient; do not detach it (detach, item, no_grad, a new tensor)"
    )
    problem = gradient_problem(head, [output + stranger.sum()], head.parameters())
    assert problem.startswith("the loss reaches ") and "because no module owns it" in problem


def test_a_published_layer_is_found_by_the_end_of_its_name():
    weights = {"model.cls.dense.weight": torch.ones(2, 2), "model.cls.dense.bias": torch.ones(2)}
    assert published_layer(weights, "cls.dense", "head").keys() == {"head.weight", "head.bias"}
    del weights["model.cls.dense.bias"]
    assert published_layer(weights, "cls.dense", "head").keys() == {"head.weight"}
