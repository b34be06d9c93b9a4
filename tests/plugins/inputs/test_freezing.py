"""Which layers of a network train."""

import pytest
import timm
from mmgen_inputs.freezing import freeze, recompute
from torch import nn

from mmgen.errors import DataError


def trained(name, level, frozen_level, train_norms=False):
    """The names of the layers that train, by their first part."""
    network = timm.create_model(name, features_only=True, out_indices=(level,))
    freeze(network, name, frozen_level, train_norms)
    names = [name.removeprefix("model.") for name, parameter in network.named_parameters() if parameter.requires_grad]
    return list(dict.fromkeys(".".join(name.split(".")[: 2 if name.startswith("blocks") else 1]) for name in names))


def test_stages_of_a_resnet():
    """Normalisation layers stay frozen unless told otherwise."""
    assert trained("test_resnet", 2, None) == ["conv1", "layer1", "layer2"]
    assert trained("test_resnet", 2, 1) == ["layer2"]
    assert trained("test_resnet", 2, 2) == trained("test_resnet", 2, "all") == []
    assert trained("test_resnet", 1, None, train_norms=True) == ["conv1", "bn1", "layer1"]


def test_blocks_of_a_transformer():
    assert trained("test_vit", 3, 1) == ["blocks.2", "blocks.3"]
    assert trained("test_vit", 1, None)[:2] == ["cls_token", "pos_embed"]
    assert trained("mobilenetv3_small_050", 1, 0) == ["blocks.0"]  # the layers behind the level make no features


def test_what_a_network_cannot_do():
    with pytest.raises(DataError, match="frozen_level is 5, but 'test_resnet' has 5 levels of feature maps, 0 to 4"):
        trained("test_resnet", 1, 5)
    with pytest.raises(DataError, match="gradient_checkpointing: timm's 'line' cannot recompute its layers"):
        recompute(nn.Linear(2, 2), "line")


def test_layers_that_recompute_change_nothing_in_place():
    """A changed input could not be recomputed from."""
    network = timm.create_model("test_resnet", features_only=True)
    assert any(module.inplace for module in network.modules() if hasattr(module, "inplace"))
    recompute(network, "test_resnet")
    assert not any(module.inplace for module in network.modules() if hasattr(module, "inplace"))
