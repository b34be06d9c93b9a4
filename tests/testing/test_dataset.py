"""The suite of data sets: what may be an input of an example."""

import numpy as np
import pytest
import torch

from mmgen.examples import All, Example
from mmgen.parts import Record
from mmgen.testing.dataset import example_problem


@pytest.mark.parametrize(
    "value", [torch.ones(2), 3, (1, 2), All((torch.ones(2),)), All("ab"), Record("a", np.ones((1, 2), np.float32))]
)
def test_inputs_are_keys_and_texts(value):
    problem = example_problem(Example("a", {"image": value}))
    assert problem.startswith("'image' is ")
    assert problem.endswith("; inputs must be keys, texts, tuples of alternatives, or All")


@pytest.mark.parametrize("value", ["a", ("a", "b"), (), All(("a", "b")), All(((0, 3, (1, 2)),))])
def test_keys_texts_and_positions_are_inputs(value):
    assert example_problem(Example("a", {"image": value})) == ""
