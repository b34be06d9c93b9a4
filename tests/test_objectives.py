"""Objectives: layers that start from others."""

import torch

from mmgen.objectives import published_layer


def test_a_published_layer_is_found_by_the_end_of_its_name():
    weights = {"model.cls.dense.weight": torch.ones(2, 2), "model.cls.dense.bias": torch.ones(2)}
    assert published_layer(weights, "cls.dense", "head").keys() == {"head.weight", "head.bias"}
    del weights["model.cls.dense.bias"]
    assert published_layer(weights, "cls.dense", "head").keys() == {"head.weight"}
