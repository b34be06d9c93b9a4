"""Configs of encoders that see: their errors, which say what to do."""

import json

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from kit import seeing, toys
from kit.recipes import mistakes
from mmgen_encoders import AnyEncoder
from mmgen_inputs.pictures import ModernVBert
from PIL import Image
from pydantic import ValidationError

import mmgen
from mmgen.cli import main
from mmgen.data.datasets import Datasets
from mmgen.errors import DataError, RunError
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.storage.model_files import build_model


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_size": 60}, "image_size: 60 must be a multiple of patch_size x pixel_shuffle_factor (16)"),
    ],
)
def test_sizes_that_do_not_fit(settings, message):
    with pytest.raises(ValidationError) as error:
        ModernVBert(**settings)
    assert message in str(error.value)


@pytest.fixture
def weights(tmp_path):
    """Weights as published, without mmgen's names."""
    return seeing.saved(seeing.model().backbone, tmp_path / "weights")


def test_published_weights_without_a_processor(weights):
    (weights / "preprocessor_config.json").unlink()
    with pytest.raises(DataError) as error:
        ModernVBert(weights=str(weights)).build()
    assert str(error.value) == (
        f"backbone.weights: '{weights}' has no usable preprocessor_config.json, which says how pictures are resized; "
        "use a complete folder"
    )


def test_a_saved_encoder_without_its_processor(tmp_path):
    backbone = seeing.model().backbone
    backbone.save(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text("{")
    with pytest.raises(RunError) as error:
        backbone.config.build(folder=tmp_path)
    assert str(error.value) == (
        f"{tmp_path} has no usable preprocessor_config.json, which says how pictures are resized; use a complete folder"
    )


def test_weights_of_another_encoder(weights):
    with pytest.raises(DataError) as error:
        AnyEncoder(weights=str(weights)).build()
    assert str(error.value) == (
        f"backbone.weights: '{weights}': mmgen cannot use the encoder 'modernvbert': it consists of several models "
        "(text_config, vision_config); choose another encoder"
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


FREEZE = ["*.text_model.*", "*.vision_model.*", "backbone.model.*_head.*"]
RUN = {
    "backbone": {"type": "modernvbert", "num_hidden_layers": 2, "vision_layers": 1, "vision_size": 16},
    "inputs": {"image": {"type": "picture_tokens"}, "caption": {"type": "text"}},
    "steps": {
        "frozen": {"inputs": ["image"], "train": ["backbone"], "training": {"freeze": FREEZE}},
        "both": {"inputs": ["image", "caption"], "train": ["backbone"], "start": "frozen"},
    },
}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run on drawn scenes: the connector alone, and then everything."""
    folder = tmp_path_factory.mktemp("seeing")
    (folder / "toy.toml").write_text(toys.recipe(**RUN))
    return run(load(folder / "toy.toml", installed(), sets=(f"output={folder / 'runs'}",))[0]).path


@pytest.fixture
def photo(tmp_path):
    Image.fromarray(np.random.default_rng(0).integers(0, 255, (50, 80, 3), dtype=np.uint8)).save(tmp_path / "photo.png")
    return tmp_path / "photo.png"


@pytest.mark.slow
def test_the_connector_learns_alone(finished):
    frozen = mmgen.load(finished, step="frozen").model.backbone.state_dict()
    recipe = mmgen.load(finished).recipe
    fresh = build_model(recipe, Datasets(recipe)).backbone.state_dict()
    changed = [name for name in fresh if not torch.equal(fresh[name], frozen[name])]
    assert changed == ["model.model.connector.modality_projection.weight"]
    both = mmgen.load(finished, step="both").model.backbone.state_dict()
    assert any("vision_model" in name and not torch.equal(frozen[name], both[name]) for name in both)


@pytest.mark.slow
def test_a_photo_is_asked_about(finished, photo, tmp_path):
    arguments = ["generate", str(finished), str(photo), "--out", str(tmp_path / "a.jsonl")]
    done = CliRunner().invoke(main, arguments, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    (line,) = (tmp_path / "a.jsonl").read_text().splitlines()
    predictor = mmgen.load(finished, step="frozen")
    assert json.loads(line)["texts"][0]["score"] == pytest.approx(predictor.ask(photo).texts[0].score, abs=1e-4)
    picture = next(iter(predictor.recipe.data.build().pictures()))
    by_picture, by_key, of_photo = (predictor.ask(value).texts[0].score for value in (picture, picture.key, photo))
    assert by_picture == by_key != of_photo


@pytest.mark.slow
def test_an_export_is_transformers_own_model(finished, photo, tmp_path):
    predictor = mmgen.load(finished, step="both")
    before = predictor.ask({"picture": photo, "caption": "a red ball"}).texts
    folder = predictor.save(tmp_path / "export", transformers=True)
    assert mmgen.load(folder).ask({"picture": photo, "caption": "a red ball"}).texts == before
    source, processor = seeing.source(folder / "backbone")
    image = [[Image.open(photo)]]
    done = processor(images=image, text="[CLS]<image>[SEP]", add_special_tokens=False, return_tensors="pt")
    with torch.no_grad():
        assert source(**done).logits.isfinite().all()
