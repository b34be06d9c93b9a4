"""Several data sets of one step: which are built."""

import json

from kit import toys

from mmgen.data.datasets import Datasets
from mmgen.recipe.load import load
from mmgen.registry import installed


def write_jsonl(folder, name, lines):
    place = folder / name
    place.mkdir()
    (place / "train.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return {"type": "table", "folder": name, "validation_split": "", "test_split": "train"}


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
    assert [*sources] == [source.name for source in sources.values()] == ["table", "table 2", "scenes"]
    assert [source.share for source in sources.values()] == [1, 2.5, 1]
    assert [len(source.examples) for source in sources.values()] == [1, 1, 24]
    assert [len(source.validation) for source in sources.values()] == [0, 0, 4]
    assert sources["scenes"].examples[0] is data_sets.main.split("train")[0]  # built once
    assert (
        "a red ball" in data_sets.texts() and data_sets.fingerprint() != datasets(tmp_path, first, same).fingerprint()
    )
