"""Configs of encoders that see: their errors, which say what to do."""

import numpy as np
import pytest
import torch
from kit import seeing, toys
from kit.recipes import mistakes
from kit.refusals import refusal
from mmgen_inputs.pictures import ModernVBert
from PIL import Image
from pydantic import ValidationError

import mmgen
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run


def test_sizes_that_do_not_fit():
    with pytest.raises(ValidationError, match="image_size: 60 must be a multiple of patch_size x pixel_shuffle_factor"):
        ModernVBert(image_size=60)


@pytest.mark.slow
def test_published_weights_without_a_processor(tmp_path):
    weights = seeing.saved(seeing.model().backbone, tmp_path / "weights")
    (weights / "preprocessor_config.json").unlink()
    message = refusal(ModernVBert(weights=str(weights)).build)
    assert message == (
        f"backbone.weights: '{weights}' has no usable preprocessor_config.json, which says how pictures are resized; "
        "use a complete folder"
    )


def test_an_encoder_that_does_not_see_is_found_before_a_run(tmp_path):
    inputs = {"image": {"type": "picture_tokens"}}
    steps = {"seen": {"inputs": ["image"], "train": ["backbone"]}}
    (tmp_path / "toy.toml").write_text(text := toys.recipe(inputs=inputs, steps=steps))
    line = text.splitlines().index('type = "picture_tokens"') + 1
    assert mistakes(tmp_path / "toy.toml") == [
        f"{tmp_path}/toy.toml:{line}: inputs.image.type: 'picture_tokens' needs an encoder that sees, but the backbone "
        "'bert' sees no pictures; set backbone.type = \"modernvbert\", or use an input of features"
    ]
    load(tmp_path / "toy.toml", installed(), sets=("backbone.type=modernvbert",))


@pytest.mark.slow
def test_an_export_of_a_run_is_transformers_own_model(tmp_path, no_page):
    recipe = toys.recipe(
        output=str(tmp_path),
        backbone={"type": "modernvbert", "num_hidden_layers": 2, "vision_layers": 1, "vision_size": 16},
        inputs={"image": {"type": "picture_tokens"}, "caption": {"type": "text"}},
        steps={"both": {"inputs": ["image", "caption"], "train": ["backbone"]}},
    )
    (tmp_path / "toy.toml").write_text(recipe)
    predictor = mmgen.load(run(load(tmp_path / "toy.toml", installed())[0]).path)
    photo = Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 80, 3), dtype=np.uint8))
    before = predictor.ask({"picture": photo, "caption": "a red ball"}).texts
    folder = predictor.save(tmp_path / "export", transformers=True)
    assert mmgen.load(folder).ask({"picture": photo, "caption": "a red ball"}).texts == before
    source, processor = seeing.source(folder / "backbone")
    done = processor(images=[[photo]], text="[CLS]<image>[SEP]", add_special_tokens=False, return_tensors="pt")
    with torch.no_grad():
        assert source(**done).logits.isfinite().all()
