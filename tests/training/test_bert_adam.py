"""Adam as in BERT's original code."""

import torch

from mmgen.training.bert_adam import BertAdam


def naive(value, gradients, lr, betas, eps, decay):
    """BERT's optimization.py, written out: no correction of means that start at 0."""
    mean = square = 0.0
    for gradient in gradients:
        mean = betas[0] * mean + (1 - betas[0]) * gradient
        square = betas[1] * square + (1 - betas[1]) * gradient**2
        value -= lr * (mean / (square**0.5 + eps) + decay * value)
    return value


def test_updates_are_those_of_the_original_code():
    settings = {"lr": 0.1, "weight_decay": 0.01}
    parameter, idle = torch.nn.Parameter(torch.tensor([2.0])), torch.nn.Parameter(torch.tensor([1.0]))
    optimizer = BertAdam([{"params": [parameter, idle], **settings}], (0.9, 0.999), 1e-6)
    gradients = [0.5, -1.0, 0.25]
    for gradient in gradients:
        parameter.grad = torch.tensor([gradient])
        optimizer.step()
    expected = naive(2.0, gradients, 0.1, (0.9, 0.999), 1e-6, 0.01)
    assert abs(parameter.item() - expected) < 1e-5 and idle.item() == 1.0
    assert set(optimizer.state[parameter]) == {"exp_avg", "exp_avg_sq"}
