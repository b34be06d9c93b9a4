"""Features of a query's pictures: by key, as features, or by the extractor of the training features."""

from types import SimpleNamespace

import numpy as np
import pytest
from kit import stored
from PIL import Image

from mmgen.errors import DataError, UnavailableError
from mmgen.examples import All, ResolvedExample
from mmgen.inference.query import Query
from mmgen.inference.query_features import QueryFeatures
from mmgen.parts import Record

QUERY = Query("q", {})


@pytest.fixture
def features(tmp_path):
    embedder = stored.embedder(features=stored.fill(tmp_path / "f.h5"))
    model = SimpleNamespace(embedders={"image": embedder})
    config = type(embedder.reader)  # stands for the config: no extractor is known
    return QueryFeatures(model, {"image": config}, "run", {})


def test_a_key_and_features_are_taken_as_they_are(features):
    record = stored.record("own", 2)
    shown = []
    assert features.of("image", "3", QUERY, shown) == "3" and shown == []
    assert np.array_equal(features.of("image", record, QUERY, shown).features, record.features)
    several = features.of("image", ["3", "5"], QUERY, shown)
    assert isinstance(several, All) and several.values == ("3", "5")


def test_what_is_neither_a_picture_nor_a_key(features, tmp_path):
    path = features.embedders["image"].reader.path
    for value, message in (
        ("nowhere.png", f"nowhere.png: no such file, and not a key of {path}"),
        ("https://x.org/a.png", "https://x.org/a.png: is a web address; download the picture, and give the file"),
        (str(tmp_path), f"{tmp_path}: is a folder; give one picture"),
        (7, "image: expected a picture, a key or features, but got 7"),
        ({"features": [[1.0] * 6]}, 'image: the model needs boxes; add "boxes", with one box per row of features'),
    ):
        with pytest.raises(DataError) as error:
            features.of("image", value, QUERY, [])
        assert str(error.value) == message


def test_a_picture_needs_the_extractor_of_the_training(features):
    with pytest.raises(UnavailableError) as error:
        features.of("image", Image.new("RGB", (4, 3)), QUERY, [])
    assert str(error.value) == (
        "run: 'image' was trained on features of roi, whose extractor is not known here; give a key of the feature "
        "store, or name the extractor with --set, in Python sets of load_run: inputs.image.extractor.type=NAME"
    )
    blank = features.warm("image")
    assert not blank.features.any() and blank.features.shape == (1, stored.D)


def test_a_picture_unlike_all_others_is_remarked(features, tmp_path, monkeypatch):
    far = Record("far", np.full((2, stored.D), 1000, np.float32), np.tile(np.float32([[0, 0, 1, 1]]), (2, 1)))
    assert not list(features.remarks(ResolvedExample("a", {"image": far})))  # too few pictures to compare with
    monkeypatch.setattr("mmgen.features.statistics.FEWEST", 8)
    features._ranges.clear()
    near = features.embedders["image"].reader.store.read("5")
    (remark,) = features.remarks(ResolvedExample("a", {"image": far}))
    assert remark.startswith("image: the picture is unlike the pictures that the model knows")
    assert list(features.remarks(ResolvedExample("a", {"image": near}))) == []
