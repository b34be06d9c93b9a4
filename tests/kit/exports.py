"""Data sets exported in a published format and read again."""

import tomllib

from mmgen_questions import Vqg
from mmgen_tasks import CocoCaptions, Flickr30kEntities, Nlvr2, Refcoco, Vcr, VqaAnswers

from kit.toys import recipe
from mmgen.cli.data import data_table
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.export import export, find_exporter

FEW = {"train_size": 4, "val_size": 2, "test_size": 2, "image_size": 64}
PIXEL = 1 / 64 + 1e-6
READERS = {
    config.model_fields["type"].default: config
    for config in (VqaAnswers, Nlvr2, Vcr, Refcoco, Flickr30kEntities, CocoCaptions, Vqg)
}


def export_and_read(tmp_path, config, form: str):
    """Export the data set of a config, and return the config of the table `[data]` that the command prints."""
    (tmp_path / "recipe.toml").write_text(recipe())
    loaded_recipe, _ = load(tmp_path / "recipe.toml", installed())
    result = export(loaded_recipe, config, find_exporter(form, installed()), tmp_path / "out", None, Progress())
    (tmp_path / "data.toml").write_text(data_table(result, tmp_path / "out"))
    data = tomllib.loads((tmp_path / "data.toml").read_text())["data"]
    return READERS[data["type"]].model_validate(data)


def close(first, second) -> bool:
    """Equal, numbers within a pixel."""
    if isinstance(first, float) and isinstance(second, float):
        return abs(first - second) <= PIXEL
    if isinstance(first, dict) and isinstance(second, dict):
        return first.keys() == second.keys() and all(close(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(close, first, second))
    return first == second


def assert_same(config, again, exact: bool = True) -> None:
    first_data, second_data = config.build(), again.build()
    for role in ("train_split", "validation_split", "test_split"):
        first, second = first_data.split(getattr(config, role)), second_data.split(getattr(again, role))
        assert [example.id for example in first] == [example.id for example in second]
        for example, read in zip(first, second, strict=True):
            assert example.inputs == read.inputs and example.targets == read.targets
            assert example.labels == read.labels if exact else close(example.labels, read.labels)
    keys = [{picture.key for picture in dataset.pictures()} for dataset in (first_data, second_data)]
    assert keys[0] == keys[1]


def assert_same_again(tmp_path, config, form: str, exact: bool = True) -> None:
    """Published files of a config are the same after export in their own format."""
    roles = {"validation_split": config.validation_split, "test_split": config.test_split}
    assert_same(config, export_and_read(tmp_path, config, form).model_copy(update=roles), exact)
