"""Fingerprints: equal but for licences, and the licences of networks."""

import pytest
from mmgen_grid import Grid
from mmgen_vl import cnn

from mmgen.errors import DataError
from mmgen.features.fingerprints import difference, in_words, is_random, same
from mmgen.features.licenses import licenses
from mmgen.features.writer import StoreWriter

OLD = {"extractor": "roi", "model": "resnet50", "settings": {"detector": {"model": "detr", "digest": "1"}}}
NEW = {
    **OLD,
    "license": "apache-2.0",
    "settings": {"detector": {"model": "detr", "digest": "1", "license": "unknown"}},
}


def test_a_licence_does_not_change_which_features_these_are():
    assert same(OLD, NEW) and same(NEW, OLD) and not same(NEW, {**NEW, "model": "resnet18"})
    assert difference(OLD, {**NEW, "model": "resnet18"}) == "model: resnet50 there, resnet18 here"
    assert licenses(NEW) == "apache-2.0 (resnet50), unknown (detr)" and licenses(OLD) is licenses(None) is None


def test_a_store_of_an_older_version_is_continued_and_read(tmp_path):
    from kit.stored import Words, record

    path = tmp_path / "s.h5"
    for fingerprint, key in ((OLD, "a"), (NEW, "b")):
        with StoreWriter(path, fingerprint, "float32") as writer:
            writer.add(record(key, 2))
            writer.finish()
    settings = {"features": path, "fields": ("image",)}
    restored = Grid(**settings, fingerprint=NEW, width=6).build(Words())
    assert len(restored.reader.store) == 2 and restored.license == "apache-2.0 (resnet50), unknown (detr)"
    with pytest.raises(DataError, match="model: resnet50 here, resnet18 in training"):
        Grid(**settings, fingerprint={**NEW, "model": "resnet18"}, width=6).build(Words()).reader.store  # noqa: B018


def test_the_last_level_of_a_transformer_is_its_last_block():
    module, width = cnn.create("test_vit", -1, 160, "test_vit")
    assert cnn.channels(module) == [width] * 6 and module.feature_info.out_indices == (5,)


ROI = {"extractor": "roi", "model": "resnet18", "detector": {"weights": "pretrained", "size": 800}}


def test_only_what_differs_is_listed():
    changed = {**ROI, "model": "resnet50", "detector": {"weights": "pretrained"}}
    assert difference(ROI, changed, ("in training", "here")) == (
        "model: resnet18 in training, resnet50 here; detector.size: 800 in training, nothing here"
    )
    assert difference(ROI, ROI) == ""
    assert difference("roi", None) == "roi there, nothing here"


def test_a_fingerprint_in_words():
    assert in_words(ROI) == "'roi resnet18'" and in_words({}) == "'unknown'"


@pytest.mark.parametrize(
    ("fingerprint", "random"),
    [({"weights": "random"}, True), ({"detector": {"weights": "random"}}, True), (ROI, False), ("random", False)],
)
def test_random_weights_at_any_depth(fingerprint, random):
    assert is_random(fingerprint) is random
