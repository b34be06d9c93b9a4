"""Small models with the any-order generator."""

import torch
from mmgen_encoders import Bert
from mmgen_generators import AnyOrder
from mmgen_inputs import Text

from kit import toys
from kit.weights import built_once, perturbed
from mmgen.model import compose

SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 4, "vocab_size": 90, "dropout": 0.0}


@built_once
def any_order(seed: int = 0, max_tokens: int = 9, **keys):
    """A caption-to-question model with random weights in eval mode."""
    torch.manual_seed(seed)
    generator = AnyOrder(max_tokens=max_tokens, **keys)
    composed = compose(Bert(**SIZES), {"caption": Text()}, generator, texts=[" ".join(toys.WORDS)] * 3)
    return perturbed(composed)
