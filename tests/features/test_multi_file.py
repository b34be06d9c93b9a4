"""Feature stores in several files, read as one."""

import pickle

import numpy as np
import pytest
from click.testing import CliRunner
from kit.stores import FINGERPRINT, assert_same_record, fill, record

from mmgen.cli import main
from mmgen.errors import DataError
from mmgen.features import store
from mmgen.features.store import FeatureStore
from mmgen.features.stores import open_store


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "regions"
    folder.mkdir()
    for number, keys in enumerate(("ba", "d", "cé")):
        fill(folder / f"part{number}.h5", [record(key, 2 + number, seed=ord(key)) for key in keys])
    return folder


def test_a_folder_and_a_pattern_are_read_as_one(folder):
    for path in (folder, folder / "*.h5", folder / "part[0-2].h5"):
        together = open_store(path)
        assert list(together) == list(together.keys()) == ["b", "a", "d", "c", "é"] and len(together) == 5
        assert together.width == 4 and together.fingerprint == FINGERPRINT
        for number, keys in enumerate(("ba", "d", "cé")):
            for key in keys:
                assert_same_record(together.read(key), record(key, 2 + number, seed=ord(key)))
                assert together.count(key) == 2 + number and key in together
        assert together.read("c", limit=1).features.shape == (1, 4)
        assert [expected.key for expected in together.records()] == ["b", "a", "d", "c", "é"]
        assert "x" not in together and 7 not in together and together.count("x") == 0
    assert len(open_store(folder / "part?.h5")) == 5
    assert_same_record(pickle.loads(pickle.dumps(together)).read("d"), record("d", 3, seed=ord("d")))


def test_one_file_is_one_store(folder):
    assert isinstance(open_store(folder / "part0.h5"), FeatureStore)
    (folder / "odd[1].h5").write_bytes((folder / "part0.h5").read_bytes())
    assert isinstance(open_store(folder / "odd[1].h5"), FeatureStore)


def test_info_describes_them_together(folder):
    shown = CliRunner().invoke(main, ["features", "info", str(folder)]).output.splitlines()
    assert shown[:6] == [
        f"path                    {folder}",
        "files                   3",
        "images                  5",
        "regions                 15",
        "regions per image       2 to 4, 3.0 on average",
        "images without regions  0",
    ]
    assert "width                   4" in shown
    made_by = [f"{key}: {value}" for key, value in FINGERPRINT.items()]
    assert shown[-len(made_by) :] == [
        f"fingerprint             {made_by[0]}",
        *(f"{'':<24}{line}" for line in made_by[1:]),
    ]


def test_an_image_in_two_files_is_refused(folder):
    fill(folder / "part3.h5", [record("z"), record("d")])
    with pytest.raises(DataError) as error:
        open_store(folder)
    assert (
        str(error.value)
        == f"{folder}/part3.h5: image 'd' is also in {folder}/part1.h5 (1 images are in two files); each image must "
        "be in only one file"
    )


def test_files_of_unlike_features_are_refused(folder):
    fill(folder / "part3.h5", [record("z")], fingerprint={**FINGERPRINT, "model": "resnet50"})
    with pytest.raises(DataError) as error:
        open_store(folder)
    assert str(error.value) == (
        f"{folder}/part3.h5: features differ from those of {folder}/part0.h5 (model: resnet50 there, resnet18 here); "
        "use the same extractor and settings for all files"
    )
    fill(folder / "part3b.h5", [record("z", width=5)])
    (folder / "part3.h5").unlink()
    with pytest.raises(DataError, match=r"part3b.h5: features have width 5, but those of .*part0.h5 have width 4"):
        open_store(folder)


def test_a_missing_image_is_reported(folder):
    with pytest.raises(DataError) as error:
        open_store(folder).read("x")
    assert (
        str(error.value)
        == f"{folder}: no features for image 'x'; the 3 files have 5 images (for example 'b'); extract or import the "
        "missing features, or leave the image out"
    )


def test_only_what_fits_together_is_held_in_memory(folder, monkeypatch):
    size = (folder / "part0.h5").stat().st_size
    assert open_store(folder).stores[0].in_memory == store.IN_MEMORY
    monkeypatch.setattr("mmgen.features.multi_file.IN_MEMORY", 2 * size)
    together = open_store(folder)
    assert [file.in_memory for file in together.stores] == [0, 0, 0]
    assert_same_record(together.read("d"), record("d", 3, seed=ord("d")))


def test_a_model_does_not_care_how_many_files_there_are(folder, tmp_path):
    """The initial W, its fingerprint and the reader's results equal those of one file with the same images."""
    import torch
    from kit import toys
    from mmgen_regions import Regions

    from mmgen.examples import Example

    single = fill(tmp_path / "whole.h5", open_store(folder).records())
    backbone, embedders = toys.model().backbone, []
    for path in (folder, single.path):
        torch.manual_seed(0)
        embedders.append(Regions(features=path, fields=("image",), normalize="standard").build(backbone))
    several_files, single_file = embedders
    assert (
        several_files.inferred_settings() == single_file.inferred_settings()
        and torch.equal(several_files.projection.weight, single_file.projection.weight)
        and torch.equal(several_files.mean, single_file.mean)
    )
    example = Example("x", {"image": "c"}, ("q",))
    ((features, boxes, *_),), ((single_features, other_boxes, *_),) = (
        several_files.reader.read(example),
        single_file.reader.read(example),
    )
    assert np.array_equal(features, single_features) and np.array_equal(boxes, other_boxes)
