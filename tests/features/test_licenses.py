"""Licences of networks: in the metadata beside weights, and in fingerprints of features."""

import pytest
import timm
from mmgen_grid import TimmGrid
from mmgen_regions import Roi
from mmgen_vl import cnn

from mmgen.features.licenses import hub_license


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


def test_the_licence_of_a_folder_is_in_its_card(tmp_path):
    assert hub_license(str(tmp_path)) is None
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\n")
    assert hub_license(str(tmp_path)) == "mit"
    (tmp_path / "README.md").write_text("---\nlicense: [\n---\n")
    assert hub_license(str(tmp_path)) is None
