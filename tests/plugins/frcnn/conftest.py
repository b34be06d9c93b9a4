"""A converted network."""

import pytest
from click.testing import CliRunner
from kit.frcnn import published, weights

from mmgen.cli import main


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("frcnn")
    path = folder / "vg.safetensors"
    done = CliRunner().invoke(main, ["frcnn", str(published(folder / "published")), str(path)])
    assert done.exit_code == 0 and done.output == f"{path}: {len(weights())} tensors\n", done.output
    return path
