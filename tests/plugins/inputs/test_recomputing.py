"""Networks whose activations are recomputed."""

import pytest
import timm
from mmgen_inputs.picture_network import recompute
from torch import nn

from mmgen.errors import DataError


def test_a_network_that_cannot_recompute():
    with pytest.raises(DataError, match="gradient_checkpointing: timm's 'line' cannot recompute its layers"):
        recompute(nn.Linear(2, 2), "line")


def test_layers_that_recompute_change_nothing_in_place():
    """A changed input could not be recomputed from."""
    network = timm.create_model("test_resnet", features_only=True)
    assert any(module.inplace for module in network.modules() if hasattr(module, "inplace"))
    recompute(network, "test_resnet")
    assert not any(module.inplace for module in network.modules() if hasattr(module, "inplace"))
