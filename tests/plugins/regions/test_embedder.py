"""Regions: W and its reader, and the checks of a store against the training features."""

import pytest
from kit.stored import embedder, example, fill, states
from mmgen_regions import Regions, Roi

from mmgen.features.store import FeatureStore


@pytest.fixture
def store(tmp_path):
    return fill(tmp_path / "s.h5")


def test_no_more_than_max_regions(store):
    model = embedder(features=store, max_regions=4)
    assert states(model, "9", "2").mask.sum(1).tolist() == [4, 2]
    assert len(model.describe(example("9"))["boxes"]) == 4


def test_config_survives_json(store):
    config = Regions(features=store, extractor=Roi(seed=3), fields=("image",))
    dumped = config.model_dump(mode="json")
    assert dumped["extractor"]["seed"] == 3
    assert Regions.model_validate({**dumped, "extractor": Roi(**dumped["extractor"])}) == config


@pytest.fixture(scope="module")
def roi():
    return Roi(image_size=64).build()


@pytest.mark.slow
def test_drawn_scenes_through_the_store(tmp_path):
    """From pixels to slots, as in a run."""
    from mmgen_scenes import Scenes

    from mmgen.features.extract import extract

    scenes = Scenes(train_size=6, val_size=1, test_size=1).build()
    summary = extract(Roi().build(), scenes.pictures(), tmp_path / "s.h5")
    assert (summary.written, summary.broken) == (8, ())
    examples = scenes.split("train")
    model = embedder(features=tmp_path / "s.h5")
    segment = model(**model.reader.collate([model.reader.read(item) for item in examples]))
    assert segment.mask.sum(1).tolist() == [len(item.facts["things"]) + 1 for item in examples]
    assert model.describe(examples[0])["names"][-1] == "the whole scene"
    assert FeatureStore(tmp_path / "s.h5").width == 576
