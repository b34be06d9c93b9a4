"""The command `mmgen data export`, and what a format cannot represent."""

from dataclasses import replace

import pytest
from click.testing import CliRunner
from kit.exports import FEW, export_and_read
from kit.toys import recipe
from mmgen_regions import BottomUpTsv
from mmgen_scenes import Scenes
from mmgen_tasks import SceneAnswers

from mmgen.cli import main
from mmgen.errors import DataError, MmgenError, PluginError
from mmgen.recipe.load import load
from mmgen.registry import Registry, Source, installed
from mmgen.runs.export import find_exporter, find_feature_format

pytestmark = pytest.mark.slow


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


def test_features_that_no_plugin_writes_are_refused_before_anything_is_written(tmp_path):
    inputs = {"image": {"type": "regions", "extractor": {"type": "roi", "image_size": 64}}, "caption": {"type": "text"}}
    (tmp_path / "with.toml").write_text(recipe(inputs=inputs))
    (tmp_path / "texts.toml").write_text(recipe(inputs={"caption": {"type": "text"}}))
    parts = installed()
    remaining = replace(parts, parts=tuple(part for part in parts.parts if part.config is not BottomUpTsv))
    with_regions, texts = (load(tmp_path / f"{name}.toml", parts)[0] for name in ("with", "texts"))
    assert find_feature_format(with_regions, parts) is BottomUpTsv and find_feature_format(texts, remaining) is None
    with pytest.raises(MmgenError) as error:
        find_feature_format(with_regions, remaining)
    assert str(error.value) == "no installed plugin writes files of features; use --no-features"


def test_a_format_of_two_plugins_is_refused():
    ours = installed().get("dataset", "vqa_answers")

    class Rival(ours.config):
        @classmethod
        def exporters(cls):
            return (type("Rival", (type(super().exporters()[0]),), {})(),)

    rival = replace(ours, name="rival", config=Rival, source=Source("mine", "mmgen-mine", "0.3"))
    with pytest.raises(
        PluginError, match="--as vqa2: two plugins provide the format 'vqa2': mmgen-mine 0.3 and mmgen-f"
    ):
        find_exporter("vqa2", Registry((ours, rival), ()))
    inherits = replace(rival, config=type("Inherits", (ours.config,), {}))
    assert find_exporter("vqa2", Registry((ours, inherits), ())).name == "vqa2"


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
