"""Features of a finished run are found after its data set has got new keys."""

import json

from kit.toys import ROI, recipe
from mmgen_scenes import Scenes

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.model_files import features_file
from mmgen.storage.run_folder import RunFolder

NEW = ("test_things", "unseen")  # keys of drawn scenes that earlier runs do not have


class Before(Scenes):
    """Drawn scenes before they had the new keys."""

    def model_dump(self, **options):
        return {key: value for key, value in super().model_dump(**options).items() if key not in NEW}


def test_features_are_found_by_the_keys_that_a_run_was_saved_with(tmp_path):
    inputs = {"image": {"type": "regions", "extractor": ROI}}
    steps = {"first": {"inputs": ["image"], "train": ["image"]}}
    (tmp_path / "toy.toml").write_text(recipe(inputs=inputs, steps=steps))
    loaded = load(tmp_path / "toy.toml", installed())[0]
    folder = RunFolder(tmp_path / "run/seed-0")
    folder.path.mkdir(parents=True)
    (folder.path / "data.json").write_text('{"fingerprint": "x"}')
    saved = loaded.model_dump(mode="json")
    current = features_file(loaded.inputs["image"].extractor, loaded, folder)
    for key in NEW:
        del saved["data"][key]
    (folder.path / "recipe.json").write_text(json.dumps(saved))
    before = loaded.model_copy(update={"data": Before(**dict(loaded.data))})
    earlier = features_file(loaded.inputs["image"].extractor, before, folder)
    assert earlier != current
    earlier.parent.mkdir()
    earlier.touch()
    assert features_file(loaded.inputs["image"].extractor, loaded, folder) == earlier
    changed = loaded.model_copy(update={"data": loaded.data.model_copy(update={"test_things": 5})})
    assert features_file(loaded.inputs["image"].extractor, changed, folder) != earlier
