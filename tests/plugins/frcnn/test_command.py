"""`mmgen frcnn`: published files as one safetensors file, and files that cannot be converted."""

from dataclasses import fields

import pytest
import torch
from click.testing import CliRunner
from kit.frcnn import published
from mmgen_frcnn.command import settings
from mmgen_frcnn.extractor import load, write
from mmgen_frcnn.network import MEANINGS, Settings

from mmgen.cli import main
from mmgen.errors import DataError


def test_settings_are_those_of_the_file(converted, tmp_path):
    about = load(converted)[1]
    assert about["settings"]["min_size"] == 96 and about["settings"]["overlaps"] == [0.5, 0.6]
    assert about["settings"]["box_weights"] == [10.0, 10.0, 5.0, 5.0]  # the default
    folder = published(tmp_path / "other", ROI_HEADS={"NMS_THRESH_TEST": 0.3})
    assert settings(folder / "config.yaml")["overlaps"] == [0.3]
    for damaged in ("a: [", "[" * 3000):
        (folder / "config.yaml").write_text(damaged)
        with pytest.raises(
            DataError, match="config.yaml: not valid YAML; use the config.yaml beside the published weights"
        ):
            settings(folder / "config.yaml")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda folder: (folder / "config.yaml").unlink(),
            "config.yaml: No such file or directory; use the config.yaml",
        ),
        (
            lambda folder: (folder / "objects_vocab.txt").write_text("cat\n"),
            "has 1 names, but the network has 5 classes",
        ),
        (
            lambda folder: (folder / "attributes_vocab.txt").write_text("red\ngreen\n"),
            "attributes_vocab.txt: has 2 names, but the network has 3 attributes",
        ),
        (
            lambda folder: (folder / "attributes_vocab.txt").write_bytes(b"red\n\xff\n"),
            "attributes_vocab.txt:2: the encoding is not UTF-8; save the file as UTF-8",
        ),
        (lambda folder: torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin"), "not the Faster R-CNN of"),
        (lambda folder: torch.save({"a": Settings()}, folder / "pytorch_model.bin"), "could execute arbitrary code"),
    ],
)
def test_files_that_cannot_be_converted(tmp_path, change, message):
    folder = published(tmp_path / "published")
    change(folder)
    done = CliRunner().invoke(main, ["frcnn", str(folder), str(tmp_path / "vg.safetensors")])
    assert done.exit_code == 1 and message in done.output, done.output


@pytest.mark.parametrize(
    ("section", "key", "value", "expected"),
    [
        ("MODEL", "PIXEL_MEAN", [1.0, 2.0], "MODEL.PIXEL_MEAN must be three numbers, but is [1.0, 2.0]"),
        ("MODEL", "PIXEL_STD", [1, 1, 0], "MODEL.PIXEL_STD must be three numbers above 0, but is [1, 1, 0]"),
        ("MODEL", "MAX_POOL", 1, "MODEL.MAX_POOL must be true or false, but is 1"),
        ("INPUT", "MIN_SIZE_TEST", "96", "INPUT.MIN_SIZE_TEST must be a whole number from 1 to 4000, but is '96'"),
        ("RPN", "NMS_THRESH", 1.5, "RPN.NMS_THRESH must be a number from 0 to 1, but is 1.5"),
        ("RPN", "POST_NMS_TOPK_TEST", 0, "RPN.POST_NMS_TOPK_TEST must be a whole number from 1 to 100000, but is 0"),
        ("ROI_HEADS", "NMS_THRESH_TEST", [], "ROI_HEADS.NMS_THRESH_TEST must be one or more numbers from 0 to 1, but"),
        ("ROI_BOX_HEAD", "POOLER_RESOLUTION", 65, "ROI_BOX_HEAD.POOLER_RESOLUTION must be a whole number from 1 to 64"),
        ("ROI_BOX_HEAD", "BBOX_REG_WEIGHTS", [[1]], "ROI_BOX_HEAD.BBOX_REG_WEIGHTS must be four numbers above 0, but"),
        ("ANCHOR_GENERATOR", "OFFSET", float("nan"), "ANCHOR_GENERATOR.OFFSET must be a number, but is nan"),
    ],
)
def test_a_setting_that_no_network_has_is_refused(tmp_path, section, key, value, expected):
    folder = published(tmp_path / "published", **{section: {key: value}})
    with pytest.raises(DataError) as error:
        settings(folder / "config.yaml")
    assert str(error.value).startswith(f"{folder}/config.yaml: {expected}")
    assert str(error.value).endswith("; use the config.yaml beside the published weights")


def test_every_setting_has_a_meaning():
    assert MEANINGS.keys() == {field.name for field in fields(Settings)}


def test_a_turned_bit_in_a_converted_file_is_found(converted, tmp_path):
    """Also one in a weight, with which the network would give other features."""
    path, content = tmp_path / "vg.safetensors", converted.read_bytes()
    for place in (-1, len(content) // 2):
        damaged = bytearray(content)
        damaged[place] ^= 1
        path.write_bytes(damaged)
        with pytest.raises(DataError) as error:
            load(path)
        again = "convert the published files again with `mmgen frcnn`"
        assert str(error.value) == f"{path}: damaged: checksum mismatch; {again}"


def test_settings_of_a_converted_file_are_checked(converted, tmp_path):
    network, about = load(converted)
    path = tmp_path / "vg.safetensors"
    write(path, network.state_dict(), {**about, "settings": {**about["settings"], "pooled": "x"}})
    with pytest.raises(DataError) as error:
        load(path)
    assert str(error.value) == (
        f"{path}: setting 'pooled' must be a whole number from 1 to 64; convert the published files again"
    )
