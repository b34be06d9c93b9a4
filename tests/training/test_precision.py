"""Mixed precision of a step."""

import pytest
import torch

from mmgen.training.context import precision

CPU = torch.device("cpu")


@pytest.mark.parametrize(("name", "half"), [("fp32", False), ("bf16", True), ("auto", False)])
def test_the_precision_of_a_step_on_a_cpu(name, half):
    assert isinstance(precision(name, CPU), torch.autocast) is half
    with precision(name, CPU):
        product = torch.ones(2, 2) @ torch.ones(2, 2)
    assert product.dtype == (torch.bfloat16 if half else torch.float32)
