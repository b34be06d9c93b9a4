"""Several data sets of one step: which are built, and colliding ids."""

import json

import pytest
from kit import toys

from mmgen.data.datasets import Datasets
from mmgen.errors import DataError
from mmgen.recipe.load import load
from mmgen.registry import installed


def write_jsonl(folder, name, lines):
    place = folder / name
    place.mkdir()
    (place / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"type": "jsonl", "folder": name, "validation_split": "", "test_split": "train"}


def datasets(folder, *data):
    """The data sets of a recipe whose step "mixed" trains on them."""
    step = {"inputs": ["caption"], "train": ["backbone"], "data": list(data)}
    (folder / "toy.toml").write_text(toys.recipe(steps={"mixed": step}))
    return Datasets(load(folder / "toy.toml", installed())[0])


LINE = {"id": "1", "caption": "a red ball", "questions": ["why ?"]}


def test_sources_have_names_shares_and_examples(tmp_path):
    first, second = write_jsonl(tmp_path, "one", [LINE]), write_jsonl(tmp_path, "two", [{**LINE, "id": "2"}])
    same = {"type": "scenes", "train_size": 24, "val_size": 4, "test_size": 6}  # as the recipe's [data]
    data_sets = datasets(tmp_path, first, {**second, "share": 2.5}, same)
    sources = data_sets.sources("mixed")
    assert [*sources] == [source.name for source in sources.values()] == ["jsonl", "jsonl 2", "scenes"]
    assert [source.share for source in sources.values()] == [1, 2.5, 1]
    assert [len(source.examples) for source in sources.values()] == [1, 1, 24]
    assert [len(source.validation) for source in sources.values()] == [0, 0, 4]
    assert sources["scenes"].examples[0] is data_sets.main.split("train")[0]  # built once
    assert (
        "a red ball" in data_sets.texts() and data_sets.fingerprint() != datasets(tmp_path, first, same).fingerprint()
    )


def test_duplicate_ids_are_an_error(tmp_path):
    first, second = write_jsonl(tmp_path, "one", [LINE]), write_jsonl(tmp_path, "two", [{**LINE, "id": "2"}, LINE])
    with pytest.raises(DataError) as error:
        datasets(tmp_path, first, second).sources("mixed")
    assert str(error.value) == (
        "steps.mixed.data: 'jsonl' and 'jsonl 2' both have an example with the id 'train-1'; change the ids of "
        "one of them"
    )


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
