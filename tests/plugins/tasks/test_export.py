"""Data sets exported and read again have the same ids, inputs, targets, labels, pictures and features."""

import json
import tomllib

import pytest
from click.testing import CliRunner
from kit import published
from kit.toys import recipe
from mmgen_questions import Vqg
from mmgen_regions import BottomUpTsv
from mmgen_scenes import Scenes
from mmgen_tasks import (
    CocoCaptions,
    Flickr30kEntities,
    Nlvr2,
    Refcoco,
    SceneAnswers,
    SceneChoices,
    SceneExpressions,
    ScenePairs,
    ScenePhrases,
    Vcr,
    VqaAnswers,
)

from mmgen.cli import main
from mmgen.cli.export import data_table
from mmgen.errors import DataError, MmgenError
from mmgen.progress import Progress
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.runs.export import export, find_exporter

pytestmark = pytest.mark.slow

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
    result = export(loaded_recipe, config, find_exporter(form, installed()), tmp_path / "out", False, Progress())
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


@pytest.mark.parametrize(
    ("config", "form"),
    [
        (SceneAnswers(**FEW), "vqa2"),
        (SceneAnswers(**FEW, train_targets="all"), "vqa2"),
        (ScenePairs(**FEW), "nlvr2"),
        (SceneExpressions(**FEW), "refcoco"),
        (SceneExpressions(**FEW, proposals=6), "refcoco"),
        (ScenePhrases(**FEW), "flickr30k"),
        (SceneChoices(**FEW), "vcr"),
        (SceneChoices(**FEW, tags="kinds"), "vcr"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_drawn_scenes_are_the_same_after_export(tmp_path, config, form):
    again = export_and_read(tmp_path, config, form)
    if form == "vqa2":
        again = again.model_copy(update={"train_targets": config.train_targets})
        assert again.build().vocabularies() == config.build().vocabularies()
    assert_same(config, again, exact=form in ("vqa2", "nlvr2", "vcr"))


@pytest.mark.parametrize(
    ("make", "config", "form"),
    [
        (published.vqa, VqaAnswers, "vqa2"),
        (published.nlvr2, Nlvr2, "nlvr2"),
        (published.refcoco, Refcoco, "refcoco"),
        (published.flickr30k, Flickr30kEntities, "flickr30k"),
        (published.vcr, Vcr, "vcr"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_published_files_are_the_same_after_export(tmp_path, make, config, form):
    folder = make(tmp_path / "in")
    images = "vcr1images" if form == "vcr" else "images"
    evaluate = {"vqa2": "val", "refcoco": "testA", "nlvr2": "test1", "vcr": "val"}.get(form, "test")
    published_config = config(folder=folder, images=images, test_split=evaluate)
    again = export_and_read(tmp_path, published_config, form).model_copy(
        update={"validation_split": published_config.validation_split, "test_split": evaluate}
    )
    assert_same(published_config, again, exact=form != "flickr30k")


def test_questions_and_captions_of_scenes(tmp_path):
    config = Scenes(**FEW)
    again = export_and_read(tmp_path, config, "vqg").build()
    for split in ("train", "val", "test"):
        for example, read in zip(config.build().split(split), again.split(split), strict=True):
            assert read.id == f"{split}-{example.id}"  # this reader puts the split before ids
            assert (read.inputs, read.targets) == (example.inputs, example.targets)


def test_captions_of_scenes(tmp_path):
    config = Scenes(**FEW)
    again = export_and_read(tmp_path, config, "coco_captions").build()
    for split in ("train", "val", "test"):
        for example, read in zip(config.build().split(split), again.split(split), strict=True):
            assert read.id == f"{split}-{example.id}" and read.inputs == example.inputs
            assert read.targets == example.inputs["caption"]


def test_boxes_and_pictures_are_the_same_after_export(tmp_path):
    config = SceneChoices(**FEW)
    again = {picture.key: picture for picture in export_and_read(tmp_path, config, "vcr").build().pictures()}
    for picture in config.build().pictures():
        assert close(list(picture.boxes), list(again[picture.key].boxes))
        assert picture.load().tobytes() == again[picture.key].load().tobytes()


@pytest.mark.slow
def test_the_command_writes_features_and_prints_the_recipe(tmp_path):
    inputs = {"image": {"type": "regions", "extractor": {"type": "roi", "image_size": 64}}, "caption": {"type": "text"}}
    (tmp_path / "r.toml").write_text(recipe(inputs=inputs, data={"train_size": 2, "val_size": 1, "test_size": 1}))
    command = ["data", "export", f"{tmp_path}/r.toml", f"{tmp_path}/out", "--as", "vqg"]
    done = CliRunner().invoke(main, command, catch_exceptions=False)
    assert f"{tmp_path}/out: examples: 2 in train, 1 in val, 1 in test; 4 pictures" in done.output
    assert f'[data]\ntype = "vqg"\nimages = "images"\nfolder = "{tmp_path}/out"\n' in done.output
    records = {record.key: record for record in BottomUpTsv().build().records(tmp_path / "out/regions.tsv")}
    config = load(tmp_path / "r.toml", installed())[0]
    dataset = config.data.build()
    local_records = list(config.inputs["image"].extractor.build().records(dataset.pictures()))
    assert [*records] == [record.key for record in local_records]
    for record in local_records:
        assert (records[record.key].features == record.features).all()
        assert abs(records[record.key].boxes - record.boxes).max() < 1e-6
    again = CliRunner().invoke(main, command)
    assert (
        again.exit_code == 1
        and again.output == f"error: {tmp_path}/out: already exists and is not empty; choose another folder\n"
    )


def test_examples_that_a_format_cannot_represent(tmp_path):
    with pytest.raises(
        DataError, match=r"data \(scenes\): example 'train-00000' of 'train' has no label 'answers', which vqa2 needs"
    ):
        export_and_read(tmp_path, Scenes(**FEW), "vqa2")
    with pytest.raises(MmgenError, match="--as vqa: unknown format; did you mean 'vqa2'\\?; available: coco_capt"):
        export_and_read(tmp_path, Scenes(**FEW), "vqa")
    with pytest.raises(DataError, match="VQG needs one example per picture"):
        export_and_read(tmp_path, SceneAnswers(**FEW), "vqg")
    assert not (tmp_path / "out").exists()


def test_numeric_ids_stay_numbers(tmp_path):
    export_and_read(tmp_path, VqaAnswers(folder=published.vqa(tmp_path / "in"), images="images"), "vqa2")
    (row, *_) = json.loads((tmp_path / "out/v2_OpenEnded_mscoco_val2014_questions.json").read_text())["questions"]
    assert row == {"question_id": 20, "image_id": 20, "question": "Is it red?"}
