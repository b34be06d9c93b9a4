"""Classes of regions: saved in stores, refused if they do not fit, and absent from stores created without them."""

import pickle
from dataclasses import replace

import h5py
import numpy as np
import pytest
from kit.stores import FINGERPRINT, NAMES, assert_same_record, classes, classified, fill, record

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.features.journal import Journal
from mmgen.features.stores import open_store
from mmgen.features.writer import StoreWriter


def test_the_surest_come_first_and_are_made_a_distribution():
    top = Classes.surest(NAMES, np.array([[0.1, 0.5, 0.0, 0.2], [0.0, 0.0, 1.0, 0.0]]), 2)
    assert top.ids.tolist() == [[1, 3], [2, 0]]
    assert np.allclose(top.distributions(), [[0, 5 / 7, 0, 2 / 7], [0, 0, 1, 0]])
    first = top.behind_unknown()
    assert first.known.tolist() == [False, True, True] and not first.distributions()[0].any()


def test_what_goes_in_comes_out_beside_images_without(tmp_path):
    records = [record("a"), classified("b", 4), record("c", 0), classified("d", 2, 5)]
    store = fill(tmp_path / "s.h5", records)
    for record_ in (records[0], records[1], records[3]):
        assert_same_record(store.read(record_.key), record_)
    assert store.read("c").classes is None and store.read("b", limit=2).classes.ids.shape == (2, 2)
    assert (store.class_names, store.top_classes, store.describe()["classes"]) == (NAMES, 2, 4)
    assert_same_record(pickle.loads(pickle.dumps(store)).read("d"), records[3])
    with h5py.File(tmp_path / "s.h5") as file:
        assert file["class_names"][:].tolist() == [name.encode() for name in NAMES]
        assert len(file) == 10 and all(dataset.fletcher32 for dataset in file.values())


def test_a_store_without_classes_has_nothing_of_them(tmp_path):
    store = fill(tmp_path / "s.h5", [record("a"), record("b")])
    with h5py.File(tmp_path / "s.h5") as file:
        assert set(file) == {"keys", "ends", "features", "boxes", "scores", "labels", "label_names"}
    assert store.class_names == () and "classes" not in store.describe()


def test_a_journal_stores_names_once_and_can_be_resumed(tmp_path):
    path = tmp_path / "s.h5"
    with StoreWriter(path, FINGERPRINT, "float32") as writer:
        for new_record in (record("a"), classified("b"), classified("c", seed=1)):
            writer.add(new_record)
    assert (tmp_path / "s.h5.partial").read_bytes().count(b"class_names") == 1
    journal = Journal(tmp_path / "s.h5.partial", {})
    assert journal.classes == (NAMES, 2)
    assert_same_record(journal.read(journal.entries[2]), classified("c", seed=1))
    journal.close()
    fill(path, [classified("d", seed=2)]).close()
    store = fill(path, [classified("e", seed=3)])  # and so is a finished store
    for key, seed in zip("bcde", range(4), strict=True):
        assert_same_record(store.read(key), classified(key, seed=seed))
    assert store.read("a").classes is None


def test_a_finished_store_without_classes_gets_some(tmp_path):
    fill(tmp_path / "s.h5", [record("a")]).close()
    store = fill(tmp_path / "s.h5", [classified("b")])
    assert_same_record(store.read("a"), record("a"))
    assert_same_record(store.read("b"), classified("b"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"names": NAMES[::-1]}, "class names differ from those of earlier images"),
        ({"ids": np.array([[0, -2]] * 3)}, "class id -2 is out of range for 4 classes"),
        (
            {"probabilities": np.full((3, 2), np.nan)},
            "class probabilities of a region must be numbers of at least 0 with a sum of at most 1",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path, change, why):
    with StoreWriter(tmp_path / "s.h5", FINGERPRINT, "float32") as writer:
        writer.add(classified("a"))
        with pytest.raises(DataError) as error:
            writer.add(record("b", classes=replace(classes(), **change)))
    assert str(error.value) == f"image 'b': {why}"


def test_several_files_have_the_same_classes(tmp_path):
    fill(tmp_path / "1.h5", [record("a")])
    fill(tmp_path / "2.h5", [classified("b")])
    store = open_store(tmp_path)
    assert store.class_names == NAMES and store.describe()["classes"] == 4
    assert_same_record(store.read("b"), classified("b"))
    fill(tmp_path / "3.h5", [record("c", classes=classes(names=NAMES[::-1]))])
    with pytest.raises(DataError) as error:
        open_store(tmp_path)
    assert str(error.value) == (
        f"{tmp_path}/3.h5: class names differ from those of earlier files; use the same extractor and settings for "
        "all files"
    )
