"""Pictures through a network in the model: equal to stored features if it is frozen, trained along if it is not."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
import torch
from kit import toys
from mmgen_extractors import Roi, TimmGrid
from mmgen_inputs import Grid, Regions
from mmgen_inputs.pictures import Pictures
from mmgen_scenes import Scenes
from mmgen_vlbert import VlBert, VlBertRegions
from PIL import Image
from safetensors.torch import load_file

import mmgen
from mmgen.errors import DataError
from mmgen.examples import All, ResolvedExample
from mmgen.features.extract import extract
from mmgen.model import seeded_part
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.run import run
from mmgen.testing import EmbedderSuite
from mmgen.testing.tiny import Tiny

PAGE = Path(__file__).resolve().parents[3] / "docs" / "pictures.md"
RECIPE = PAGE.parents[1] / "recipes" / "learning_along.toml"
ROI = Roi(model="test_resnet", image_size=64)
SCENES = Scenes(train_size=6, val_size=1, test_size=1, image_size=64).build()
PICTURES = {picture.key: picture for picture in SCENES.pictures()}
IMAGE = {"fields": ("image",)}


def example(*keys):
    return ResolvedExample("-".join(keys), {"image": keys[0] if len(keys) == 1 else All(keys)})


EXAMPLES = [example("train-00000"), example("train-00001", "train-00002"), example("train-00003")]


def built(config, types=2):
    """An input, built and prepared from the seed of the part, as in a run."""
    torch.manual_seed(0)
    backbone = Tiny(types=types).build()
    with seeded_part("inputs.image"):
        embedder = config.model_copy(update=IMAGE).build(backbone)
    if config.takes == "picture":
        with seeded_part("inputs.image"):
            embedder.prepare(PICTURES)
    return embedder


def collated(embedder, examples=EXAMPLES):
    return embedder.reader.collate([embedder.reader.read(one_example) for one_example in examples])


class TestRegions(EmbedderSuite):
    def config(self):
        return Pictures(embedder=Regions(normalize="standard", max_regions=4), extractor=ROI)

    def examples(self):
        return [EXAMPLES[0], EXAMPLES[2]]

    def pictures(self):
        return PICTURES


class TestCells(TestRegions):
    def config(self):
        cells = TimmGrid(model="test_vit", image_size=160, grid=2, level=2, pool=1)
        return Pictures(embedder=Grid(), extractor=cells)


class TestVlBertsPictures(TestRegions):
    def config(self):
        return Pictures(embedder=VlBertRegions(dropout=0.0), extractor=ROI)

    def backbone_config(self):
        return VlBert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2, intermediate_size=32)


@pytest.mark.parametrize(
    ("inner", "extractor"),
    [
        (Regions(), ROI),
        (Regions(normalize="standard", max_regions=3), ROI),
        (Grid(normalize="standard"), TimmGrid(model="test_vit", image_size=160, grid=3, level=-1, pool=1)),
    ],
)
def test_a_frozen_network_equals_stored_features(tmp_path, inner, extractor):
    extract(extractor.build(), list(PICTURES.values()), tmp_path / "all.h5", dtype="float32")
    stored = built(inner.model_copy(update={"features": tmp_path / "all.h5"}))
    frozen = built(Pictures(embedder=inner, extractor=extractor))
    before, after = stored(**collated(stored)), frozen(**collated(frozen))
    assert (before.states - after.states).abs().max() < 1e-5 < before.states.abs().max()
    assert torch.equal(before.mask, after.mask)
    assert frozen.describe(EXAMPLES[1]) == stored.describe(EXAMPLES[1])


def test_other_inputs_see_the_features_too(tmp_path):
    """VL-BERT's regions average features, hide some of them, and add them to words."""
    extract(ROI.build(), list(PICTURES.values()), tmp_path / "all.h5", dtype="float32")
    stored = built(VlBertRegions(dropout=0.0, features=tmp_path / "all.h5"), types=3)
    frozen = built(Pictures(embedder=VlBertRegions(dropout=0.0), extractor=ROI), types=3)
    frozen.inner.load_state_dict(stored.state_dict())
    some = [EXAMPLES[0], EXAMPLES[2]]
    before, after = stored(**collated(stored, some)), frozen(**collated(frozen, some))
    assert torch.allclose(before.states, after.states, atol=1e-5)
    assert frozen.vocabularies() == stored.vocabularies() != {"classes": ()}
    assert frozen.reader.hides == "regions"


def test_a_float16_store_differs_by_its_rounding(tmp_path):
    extract(ROI.build(), list(PICTURES.values()), tmp_path / "all.h5")
    stored = built(Regions(features=tmp_path / "all.h5"))
    frozen = built(Pictures(embedder=Regions(), extractor=ROI))
    frozen.inner.load_state_dict(stored.state_dict())
    before, after = stored(**collated(stored)).states, frozen(**collated(frozen)).states
    assert 0 < (before - after).abs().max() < 2e-3 * before.abs().max()


def test_a_picture_that_several_rows_show_is_computed_once():
    embedder = built(Pictures(embedder=Regions(), extractor=ROI))
    batch = collated(embedder, [EXAMPLES[0], EXAMPLES[1], EXAMPLES[0]])
    assert batch["pixels"].shape == (3, 3, 64, 64) and batch["pixels"].dtype == torch.uint8
    assert batch["source"].tolist() == [[0, 0], [1, 2], [0, 0]]


def test_recomputation_keeps_fewer_activations_and_the_same_gradients():
    (before, stored), (after, recomputed) = (gradients_and_memory(recomputes) for recomputes in (False, True))
    assert recomputed < 0.8 * stored
    assert before.keys() == after.keys() and any("network." in name for name in before)
    for name, gradient in before.items():
        assert torch.allclose(gradient, after[name], atol=1e-5), name


def gradients_and_memory(recomputes):
    """Gradients by name, and the bytes of the tensors that are kept for the backward pass."""
    deep = ROI.model_copy(update={"level": -1, "pool": 1})
    embedder = built(Pictures(embedder=Regions(), extractor=deep, gradient_checkpointing=recomputes))
    sizes = []

    def keep(tensor):
        sizes.append(tensor.nbytes)
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        loss = embedder(**collated(embedder)).states.square().sum()
    loss.backward()
    gradients = {name: p.grad for name, p in embedder.named_parameters() if p.grad is not None}
    return gradients, sum(sizes)


def test_statistics_of_batch_norms_stay():
    embedder = built(Pictures(embedder=Regions(), extractor=ROI)).train()
    before = {name: value.clone() for name, value in embedder.network.named_buffers()}
    embedder(**collated(embedder))
    assert not any(module.training for module in embedder.network.modules())
    assert before and all(torch.equal(value, before[name]) for name, value in embedder.network.named_buffers())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"embedder": mmgen.EmbedderConfig(type="text")}, "'text' is not an input of features"),
        ({"embedder": Regions(features="a.h5")}, "embedder: 'features' must not be set, because the network computes"),
        ({"extractor": mmgen.ExtractorConfig(type="detector")}, "the network of 'detector' cannot train with a model"),
        ({"extractor": Roi(detector=ROI)}, "extractor: 'detector' must not be set; extract its boxes once"),
    ],
)
def test_settings_that_contradict_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        Pictures(**{"embedder": Regions(), "extractor": ROI, **changes})


def table(**changes):
    return {
        "type": "picture_network",
        "embedder": {"type": "regions"},
        "extractor": {"type": "roi", "model": "test_resnet", "image_size": 64},
        **changes,
    }


def written(folder, name, image, **training):
    """A recipe with one step that reads pictures and captions."""
    text = toys.recipe(
        name=name,
        output=str(folder / "runs"),
        inputs={"caption": {"type": "text"}, "image": image},
        steps={"both": {"inputs": ["caption", "image"], "train": ["image", "backbone"]}},
        training=training,
        data={"train_size": 8, "val_size": 2, "test_size": 2, "image_size": 64},
    )
    (folder / f"{name}.toml").write_text(text)
    return load(folder / f"{name}.toml", installed())[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run of the recipe in docs/pictures.md, made smaller: its network trains along, with a rate of its own."""
    folder = tmp_path_factory.mktemp("trained")
    (recipe,) = re.findall(r"^```toml\n(# along.toml\n.*?)^```$", PAGE.read_text(encoding="utf-8"), re.M | re.S)
    (folder / "along.toml").write_text(recipe)
    sets = ("inputs.image.extractor.model=test_resnet", "inputs.image.extractor.pool=1", f"output={folder / 'runs'}")
    few = tuple(f"data.{split}_size=8" for split in ("train", "val", "test"))
    return run(load(folder / "along.toml", installed(), sets=(*sets, *few))[0]).path


@pytest.mark.slow
def test_a_frozen_run_equals_a_run_on_stored_features(tmp_path, no_page):
    stored = {"type": "regions", "extractor": {"type": "roi", "model": "test_resnet", "image_size": 64}}
    losses = []
    for name, image in (("stored", stored), ("frozen", table())):
        freeze = ["*.image.network.*"] if name == "frozen" else []
        log = run(written(tmp_path, name, image, freeze=freeze)).path / "steps" / "both" / "log.jsonl"
        losses.append([json.loads(line)["loss"] for line in log.read_text().splitlines()])
    assert len(losses[0]) > 1 and np.allclose(*losses, rtol=2e-3)  # the store has float16


@pytest.mark.slow
def test_a_network_learns_along_and_is_asked_about_a_photo(trained, tmp_path):
    predictor = mmgen.load(trained)
    fresh = predictor.recipe.inputs["image"].extractor.build().network.module.state_dict()
    now = predictor.model.embedders["image"].network.module.state_dict()
    changed = [name for name in fresh if not torch.equal(fresh[name], now[name])]
    assert "layer1.0.conv1.weight" in changed and all(name.startswith("layer1.0.conv") for name in changed)
    Image.fromarray(np.full((50, 80, 3), 90, np.uint8)).save(tmp_path / "photo.png")
    done = toys.mmgen_here(
        tmp_path, "generate", trained, "photo.png", "--input", "caption=a red ball", "--out", "a.jsonl"
    )
    assert done.returncode == 0, done.stderr
    (line,) = (tmp_path / "a.jsonl").read_text().splitlines()
    with_box = predictor.ask(
        {"image": {"picture": tmp_path / "photo.png", "boxes": [[0, 0, 0.5, 1]]}, "caption": "a red ball"}
    )
    assert "error" not in json.loads(line) and with_box.texts[0].score != json.loads(line)["texts"][0]["score"]
    by_key = predictor.ask({"picture": "train-00000", "caption": "a red ball"}).texts[0]
    picture = next(iter(predictor.recipe.data.build().pictures()))
    assert predictor.ask({"picture": picture, "caption": "a red ball"}).texts[0].score == by_key.score


@pytest.mark.slow
@pytest.mark.parametrize(
    ("profile", "stages"), [("frozen", set()), ("stage", {"layer2"}), ("recomputed", {"conv1", "layer1", "layer2"})]
)
def test_what_trains_in_the_recipe(profile, stages, tmp_path):
    sets = ("inputs.image.extractor.model=test_resnet", f"output={tmp_path}", "training.epochs=1")
    few = tuple(f"data.{split}_size=8" for split in ("train", "val"))
    recipe = load(RECIPE, installed(), profile, (*sets, *few))[0]
    trained = load_file(run(recipe).path / "steps" / "picture" / "weights.safetensors")
    fresh = recipe.inputs["image"].extractor.build().network.module.state_dict()
    names = (name for name in fresh if not torch.equal(fresh[name], trained[f"embedders.image.network.module.{name}"]))
    assert {name.split(".")[0] for name in names} == stages


@pytest.mark.slow
def test_an_export_has_the_network(trained, tmp_path):
    picture = np.full((50, 80, 3), 90, np.uint8)
    predictor = mmgen.load(trained)
    before = predictor.ask({"picture": picture, "caption": "a red ball"}).texts[0]
    exported = mmgen.load(predictor.save(tmp_path / "export"))
    assert exported.ask({"picture": picture, "caption": "a red ball"}).texts[0] == before
    with pytest.raises(DataError, match="no picture has the key 'train-00000'"):
        exported.ask({"image": "train-00000", "caption": "a red ball"})
    for file in ("recipe.json", "inputs.json"):
        settings = json.loads((tmp_path / "export" / file).read_text())
        settings.get("inputs", settings)["image"].pop("width")
        (tmp_path / "export" / file).write_text(json.dumps(settings))
    with pytest.raises(DataError, match="width is missing in the settings of the trained model"):
        mmgen.load(tmp_path / "export")
