"""The file of the features that a run computes: other pictures have other files, and a moved run finds its file."""

from pathlib import Path

from kit.toys import ROI, recipe

from mmgen.files import write_json
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage import recipe_file
from mmgen.storage.model_files import features_file
from mmgen.storage.run_folder import RunFolder

PLACE = Path("runs/toy/default/seed-0")


def saved_run(**data) -> RunFolder:
    """A run in the current folder, as far as the name of its features needs it."""
    changes = {"inputs": {"image": {"type": "regions", "extractor": ROI}}, "data": data}
    Path("toy.toml").write_text(recipe(**changes, steps={"first": {"inputs": ["image"], "train": ["image"]}}))
    PLACE.mkdir(parents=True, exist_ok=True)
    identity = load(Path("toy.toml"), installed())[0].identity()
    write_json(PLACE / "recipe.json", identity | {recipe_file.STARTED: recipe_file.started_in(PLACE)})
    write_json(PLACE / "data.json", {"fingerprint": "x"})
    return RunFolder(PLACE)


def file_of(folder: RunFolder) -> Path:
    loaded = folder.recipe(installed())
    return features_file(loaded.inputs["image"].extractor, loaded, folder)


def test_other_pictures_have_other_features(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert len({file_of(saved_run(image_size=size)) for size in (64, 96, 64)}) == 2


def test_a_moved_run_finds_its_features(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    before = file_of(saved_run(type="jsonl", folder="texts", **dict.fromkeys(("train_size", "val_size", "test_size"))))
    monkeypatch.chdir(tmp_path)
    Path("here").rename("there")
    moved = RunFolder("there" / PLACE)
    assert moved.recipe(installed()).data.folder == tmp_path / "there" / "texts"
    assert file_of(moved) == "there" / before
