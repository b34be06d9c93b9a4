"""Files of an export: which folder is one, and what its config may hold."""

import json

import pytest

from mmgen.errors import RunError
from mmgen.storage.exports import is_export, read_config, read_vocabularies, without_local_paths


def test_a_run_is_no_export(tmp_path):
    assert not is_export(tmp_path)
    (tmp_path / "config.json").write_text('{"format_version": 1}')
    assert is_export(tmp_path)
    (tmp_path / "recipe.json").write_text("{}")
    assert not is_export(tmp_path)


def test_another_folder_and_a_newer_format(tmp_path):
    with pytest.raises(RunError) as error:
        read_config(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}: no config.json in this folder; name a folder that `mmgen export` wrote, or a run folder"
    )
    (tmp_path / "config.json").write_text('{"format_version": 99}')
    with pytest.raises(RunError) as error:
        read_config(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/config.json: has format_version 99, but this mmgen reads up to 1; upgrade mmgen"
    )


def test_classes_of_heads(tmp_path):
    assert read_vocabularies(tmp_path) == {}
    path = tmp_path / "vocabularies.json"
    path.write_text(json.dumps({"vocabularies": {"answers": ["yes", "no"]}}))
    assert read_vocabularies(tmp_path) == {"answers": ("yes", "no")}
    path.write_text(json.dumps({"vocabularies": {"answers": "yes"}}))
    with pytest.raises(RunError) as error:
        read_vocabularies(tmp_path)
    assert str(error.value) == (
        f"{path}: damaged: 'vocabularies' must be lists; download or copy the complete folder again"
    )


def test_no_path_of_this_machine(tmp_path):
    (tmp_path / "beside").touch()
    settings = {"weights": str(tmp_path / "beside"), "names": ["bert-base-cased", "own.safetensors"], "size": 3}
    assert without_local_paths(settings) == {"weights": "local", "names": ["bert-base-cased", "local"], "size": 3}
