"""`mmgen frcnn`: published files as one safetensors file, and files that cannot be converted."""

import pytest
import torch
from click.testing import CliRunner
from kit.frcnn import published
from mmgen_frcnn.command import settings
from mmgen_frcnn.extractor import load
from mmgen_frcnn.network import Settings

from mmgen.cli import main
from mmgen.errors import DataError


def test_settings_are_those_of_the_file(converted, tmp_path):
    about = load(converted)[1]
    assert about["settings"]["min_size"] == 96 and about["settings"]["overlaps"] == [0.5, 0.6]
    assert about["settings"]["box_weights"] == [10.0, 10.0, 5.0, 5.0]  # the default
    folder = published(tmp_path / "other", ROI_HEADS={"NMS_THRESH_TEST": 0.3})
    assert settings(folder / "config.yaml")["overlaps"] == [0.3]
    (folder / "config.yaml").write_text("a: [")
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
        (lambda folder: torch.save({"a": torch.zeros(1)}, folder / "pytorch_model.bin"), "not the Faster R-CNN of"),
        (lambda folder: torch.save({"a": Settings()}, folder / "pytorch_model.bin"), "could execute arbitrary code"),
    ],
)
def test_files_that_cannot_be_converted(tmp_path, change, message):
    folder = published(tmp_path / "published")
    change(folder)
    done = CliRunner().invoke(main, ["frcnn", str(folder), str(tmp_path / "vg.safetensors")])
    assert done.exit_code == 1 and message in done.output, done.output
