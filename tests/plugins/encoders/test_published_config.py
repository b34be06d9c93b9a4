"""config.json of published weights, where it is on this machine."""

import pytest
from mmgen_encoders.published_config import published_config


def test_of_a_folder(tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    assert published_config(str(tmp_path)) == {"model_type": "bert"}


@pytest.mark.parametrize("content", ["{", "[1]", "[" * 100_000])
def test_a_damaged_file_is_left_to_the_encoder(tmp_path, content):
    (tmp_path / "config.json").write_text(content)
    assert published_config(str(tmp_path)) is None


@pytest.mark.parametrize("name", ["nobody/nothing", "not a name", "a/b/c"])
def test_what_is_not_here(name):
    assert published_config(name) is None
