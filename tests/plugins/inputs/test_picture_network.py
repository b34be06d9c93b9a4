"""Pictures through a network in the model: equal to stored features if it is frozen, trained along if it is not."""

import numpy as np
import pytest
import torch
from kit import toys
from mmgen_extractors import Roi, TimmGrid
from mmgen_inputs import Grid, Regions
from mmgen_inputs.pictures import Pictures
from mmgen_scenes import Scenes
from mmgen_vlbert import VlBert, VlBertRegions

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

pytestmark = pytest.mark.slow

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
        ({"embedder": Regions(features="a.h5")}, "embedder: 'features' must not be set, because the network computes"),
        ({"extractor": mmgen.ExtractorConfig(type="detector")}, "the network of 'detector' cannot train with a model"),
    ],
)
def test_settings_that_contradict_each_other(changes, message):
    with pytest.raises(ValueError, match=message):
        Pictures(**{"embedder": Regions(), "extractor": ROI, **changes})


def test_a_network_learns_along_is_asked_about_a_picture_and_exported(tmp_path, no_page):
    roi = {"type": "roi", "model": "test_resnet", "image_size": 64, "level": 1, "pool": 1}
    image = {"type": "picture_network", "embedder": {"type": "regions"}, "extractor": roi}
    recipe = toys.recipe(
        output=str(tmp_path),
        inputs={"caption": {"type": "text"}, "image": image},
        steps={"both": {"inputs": ["caption", "image"], "train": ["image", "backbone"]}},
        training={"freeze": ["*.network.module.conv1.*", "*.network.module.*bn*"]},
        data={"train_size": 8, "image_size": 64},
    )
    (tmp_path / "toy.toml").write_text(recipe)
    predictor = mmgen.load(run(load(tmp_path / "toy.toml", installed())[0]).path)
    fresh = predictor.recipe.inputs["image"].extractor.build().network.module.state_dict()
    now = predictor.model.embedders["image"].network.module.state_dict()
    changed = [name for name in fresh if not torch.equal(fresh[name], now[name])]
    assert "layer1.0.conv1.weight" in changed and all(name.startswith("layer1.0.conv") for name in changed)
    picture = {"picture": np.full((50, 80, 3), 90, np.uint8)}
    whole, boxed = (
        predictor.ask({"image": value, "caption": "a red ball"}).texts[0]
        for value in (picture, picture | {"boxes": [[0, 0, 0.5, 1]]})
    )
    assert whole.score != boxed.score
    exported = mmgen.load(predictor.save(tmp_path / "export"))
    assert exported.ask({"image": picture, "caption": "a red ball"}).texts[0] == whole
    with pytest.raises(DataError, match="no picture has the key 'train-00000'"):
        exported.ask({"image": "train-00000", "caption": "a red ball"})
