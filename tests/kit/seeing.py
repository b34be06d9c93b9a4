"""Small encoders that see, their pictures, and transformers' own model and processor with the same weights."""

from functools import partial

import numpy as np
import torch
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_inputs.pictures import ModernVBert, PictureTokens
from PIL import Image
from safetensors.torch import save_file
from transformers import AutoImageProcessor, AutoModelForMaskedLM, AutoTokenizer, Idefics3Processor

from kit.weights import built_once, perturbed
from mmgen.examples import All, ResolvedExample
from mmgen.model import Model, compose
from mmgen.parts import Picture
from mmgen.testing import TEXTS

SIZES = dict(
    num_hidden_layers=3,
    hidden_size=32,
    num_attention_heads=4,
    vocab_size=64,
    image_size=32,
    vision_size=16,
    vision_layers=2,
)
FORMATS = {"wide": (96, 40), "small": (30, 50), "tall": (64, 192)}  # width, height of pictures


class NarrowModernVBert(ModernVBert):
    """With a window of four slots to either side, so that rows are longer."""

    def check_sizes(self, sizes):
        sizes.text_config.local_attention, sizes.text_config.max_position_embeddings = 8, 300


def config(**settings):
    return NarrowModernVBert(**{**SIZES, **settings})


def picture(name: str) -> Picture:
    """Random pixels."""
    width, height = FORMATS[name]
    pixels = np.random.default_rng(width).integers(0, 255, (height, width, 3), dtype=np.uint8)
    return Picture(name, partial(Image.fromarray, pixels))


def pictures() -> dict[str, Picture]:
    return {name: picture(name) for name in FORMATS}


@built_once
def model(max_tokens: int = 6, **image) -> Model:
    """A model with random weights that are not tiny, which cuts pictures into tiles, in eval mode."""
    torch.manual_seed(0)
    inputs = {"image": PictureTokens(**{"longest_edge": 64, **image}), "caption": Text()}
    composed = compose(config(), inputs, Masked(max_tokens=max_tokens), texts=TEXTS)
    composed.embedders["image"].prepare(pictures())
    return perturbed(composed, 0.03)


def examples() -> list[ResolvedExample]:
    """A picture of several tiles, one of a single tile in another row, and a row with two pictures."""
    values = ("wide", "small", All(("small", "tall")))
    return [
        ResolvedExample(f"e{number}", {"image": value, "caption": TEXTS[number]}, (TEXTS[number + 1],))
        for number, value in enumerate(values)
    ]


def saved(backbone, folder):
    """The backbone's files as on a hub."""
    backbone.save(folder)
    save_file(
        {name: tensor.clone() for name, tensor in backbone.library_weights().items()}, folder / "model.safetensors"
    )
    return folder


def source(folder):
    """transformers' own model, and its own processor for pictures and texts."""
    model, report = AutoModelForMaskedLM.from_pretrained(folder, output_loading_info=True)
    assert not (report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"])
    vision, sizes = model.config.vision_config, model.config
    tokens = (vision.image_size // vision.patch_size) ** 2 // sizes.pixel_shuffle_factor**2
    images, words = AutoImageProcessor.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)
    return model.eval(), Idefics3Processor(images, words, image_seq_len=tokens)
