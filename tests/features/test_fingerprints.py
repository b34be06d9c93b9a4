"""Fingerprints: equal but for licences, and the licences of networks."""

import pytest
import timm
from mmgen_grid import Grid, TimmGrid
from mmgen_regions import Roi
from mmgen_vl import cnn

from mmgen.errors import DataError
from mmgen.features.fingerprints import difference, hub_license, in_words, is_random, licenses, same
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


@pytest.mark.parametrize(("published", "expected"), [("dinov3-license", "dinov3-license"), (None, "unknown")])
def test_pretrained_networks_have_a_licence_and_random_ones_have_none(published, expected, monkeypatch):
    def downloaded(model, weights, seed, level, size):
        module, width = cnn.create(model, level, size, model)
        module.pretrained_cfg["license"] = published
        return module, width

    monkeypatch.setattr(cnn, "load", downloaded)
    for config in (Roi, TimmGrid):
        extractor = config(model="test_resnet", weights="pretrained", image_size=64).build()
        assert extractor.fingerprint["license"] == expected and extractor.license == f"{expected} (test_resnet)"
        random = config(model="test_resnet", image_size=64).build()
        assert "license" not in random.fingerprint and random.license is None


def test_the_names_in_the_recipe_of_today_are_known_with_their_licences():
    known = {
        "vit_base_patch16_dinov3.lvd1689m": "dinov3-license",
        "vit_base_patch16_siglip_384.v2_webli": "apache-2.0",
        "vit_pe_spatial_base_patch16_512.fb": "apache-2.0",
    }
    for name, license in known.items():
        assert timm.get_pretrained_cfg(name).license == license


def test_the_last_level_of_a_transformer_is_its_last_block():
    module, width = cnn.create("test_vit", -1, 160, "test_vit")
    assert cnn.channels(module) == [width] * 6 and module.feature_info.out_indices == (5,)


def test_the_licence_of_a_folder_is_in_its_card(tmp_path):
    assert hub_license(str(tmp_path)) is None
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    assert hub_license(str(tmp_path)) == "mit"
    (tmp_path / "README.md").write_text("---\nlicense: [\n---\n")
    assert hub_license(str(tmp_path)) is None


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
