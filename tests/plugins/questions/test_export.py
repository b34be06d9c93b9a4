"""VQG exported and read again has the same examples and pictures."""

import pytest
from kit.exports import FEW, export_and_read
from mmgen_scenes import Scenes

pytestmark = pytest.mark.slow


def test_questions_and_captions_of_scenes(tmp_path):
    config = Scenes(**FEW)
    again = export_and_read(tmp_path, config, "vqg").build()
    for split in ("train", "val", "test"):
        for example, read in zip(config.build().split(split), again.split(split), strict=True):
            assert read.id == f"{split}-{example.id}"  # this reader puts the split before ids
            assert (read.inputs, read.targets) == (example.inputs, example.targets)
