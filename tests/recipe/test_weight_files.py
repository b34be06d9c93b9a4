"""The files of published weights behind a path: a file, a folder or an index; other texts may be names of a hub."""

import json

from kit.refusals import refusal

from mmgen.recipe.weight_files import EXPECTED, weight_files


def refused(text) -> str:
    return refusal(weight_files, str(text))


def write_index(folder, *names):
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {str(number): name for number, name in enumerate(names)}}))
    return index


def test_a_folder_has_its_known_file_or_a_single_one(tmp_path):
    (tmp_path / "other.pth").touch()
    assert weight_files(str(tmp_path)) == [tmp_path / "other.pth"]
    (tmp_path / "pytorch_model.bin").touch()
    assert weight_files(str(tmp_path)) == [tmp_path / "pytorch_model.bin"]
    (tmp_path / "model.safetensors").touch()
    assert weight_files(str(tmp_path)) == [tmp_path / "model.safetensors"]


def test_an_index_lists_files_of_its_folder(tmp_path):
    for name in ("b.safetensors", "a.safetensors"):
        (tmp_path / name).touch()
    index = write_index(tmp_path, "b.safetensors", "a.safetensors", "b.safetensors")
    assert (
        weight_files(str(index))
        == weight_files(str(tmp_path))
        == [tmp_path / "a.safetensors", tmp_path / "b.safetensors"]
    )
    write_index(tmp_path, "a.safetensors", "c.safetensors")
    assert refused(index) == (f"{index}: lists c.safetensors: not in the same folder; download the missing files")
    for wrong in ("../a.safetensors", "a.txt"):
        write_index(tmp_path, "a.safetensors", wrong)
        assert refused(index).startswith(f"{index}: damaged: lists '{wrong}', not a weights file of its folder; ")


def test_a_name_of_a_hub_is_not_a_path(tmp_path):
    assert weight_files("owner/name") is None and weight_files("bert-base-uncased") is None
    for text in ("./owner/name", "a/b/c", "name.safetensors"):
        assert refused(text) == f"'{text}': no such file or folder; {EXPECTED}, or a hub name"


def test_what_is_not_weights_is_refused(tmp_path):
    assert refused(tmp_path) == f"'{tmp_path}': the folder has no weights files; {EXPECTED}"
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).touch()
    assert refused(tmp_path) == f"'{tmp_path}': the folder has 2 weights files; {EXPECTED}"
    (tmp_path / "a.txt").touch()
    assert refused(tmp_path / "a.txt") == f"'{tmp_path}/a.txt': not a weights file by its name; {EXPECTED}"
