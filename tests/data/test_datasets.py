"""The data sets of a recipe together: one name means one picture, and vocabularies are those of all."""

import pytest
from kit import toys

from mmgen.data.datasets import Datasets
from mmgen.errors import DataError
from mmgen.recipe.load import load
from mmgen.registry import installed


@pytest.mark.slow
def test_one_name_means_one_picture(tmp_path):
    """Features are looked up by a picture's name: data sets may share names, but only for the same pictures."""

    def pictures(seed):
        sizes = {"train_size": 26, "val_size": 1, "test_size": 1}
        data = {"told": {"type": "scenes", **sizes}, "asked": {"type": "scene_answers", **sizes, "seed": seed}}
        steps = {
            name: {"inputs": ["image"], "train": ["backbone"], "evaluate": False, "data": table}
            for name, table in data.items()
        }
        inputs = {"image": {"type": "regions", "extractor": {"type": "roi"}}}
        (tmp_path / "toy.toml").write_text(toys.recipe(inputs=inputs, steps=steps))
        recipe = load(tmp_path / "toy.toml", installed())[0]
        return [picture.key for picture in Datasets(recipe).pictures()]

    keys = pictures(0)
    assert len(keys) == len(set(keys)) == 26 + 1 + 1
    with pytest.raises(DataError) as error:
        pictures(1)
    assert str(error.value) == (
        "data (scene_answers): two data sets use the key 'train-00000' for pictures with different boxes, but features "
        "are looked up by key; give both data sets the same settings (such as the seed) or use two recipes"
    )


def test_a_vocabulary_contains_the_choices(tmp_path):
    (tmp_path / "r.toml").write_text(toys.recipe(data={"type": "scene_choices"}))
    data_sets = Datasets(load(tmp_path / "r.toml", installed())[0])
    example = data_sets.main.split("train")[0]
    assert set(example.labels["choices"]) <= set(data_sets.texts())
