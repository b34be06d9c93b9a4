"""Classes of regions in a store's file: refused if they are damaged."""

import h5py
import numpy as np
import pytest
from kit.stores import classified, fill

from mmgen.errors import DataError
from mmgen.features.store import FeatureStore


def spoilt(path, name, value):
    """A store whose dataset is replaced, or missing (None)."""
    fill(path, [classified("a"), classified("b")]).close()
    with h5py.File(path, "r+") as file:
        del file[name]
        if value is not None:
            file[name] = value
    return path


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("class_names", None, "'class_names' is missing"),
        ("class_ids", None, "'class_ids' is missing"),
        (
            "class_names",
            np.array([b"x"] * 70_000),
            "'class_names' is |S1 of shape (70000,); expected at most 65536 strings of",
        ),
        ("class_names", np.array([b"x" * 2000] * 4), "'class_names' is |S2000 of shape (4,); expected at most 65536"),
        ("class_names", np.array([b"x"]), "'class_ids' has shape (6, 2), but the store has 1 classes"),
        ("class_ids", np.zeros((6, 2)), "'class_ids' is float64 of shape (6, 2), but the store has 6 regions"),
        ("class_ids", np.zeros((5, 2), int), "'class_ids' is int64 of shape (5, 2), but the store has 6 regions"),
        (
            "class_probabilities",
            np.zeros((6, 3), np.float32),
            "'class_probabilities' has shape (6, 3), but the store has 4 classes",
        ),
        (
            "class_probabilities",
            h5py.SoftLink("/scores"),
            "'class_probabilities' is a link, and links are not followed",
        ),
    ],
)
def test_spoilt_stores(tmp_path, name, value, why):
    path = spoilt(tmp_path / "s.h5", name, value)
    with pytest.raises(DataError) as error:
        FeatureStore(path)
    assert str(error.value).startswith(f"{path}: not a feature store, or damaged: {why}")


def test_classes_that_are_not_there_are_reported_when_their_image_is_read(tmp_path):
    path = spoilt(tmp_path / "s.h5", "class_ids", np.array([[0, 1]] * 3 + [[9, 0]] * 3, np.int32))
    store = FeatureStore(path)
    assert store.read("a").classes.ids.tolist() == [[0, 1]] * 3
    with pytest.raises(DataError) as error:
        store.read("b")
    assert str(error.value) == f"{path}: image 'b': class id 9 is out of range for 4 classes; the file is damaged"


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    fill(tmp_path / "s.h5", [classified("a")]).close()
    with h5py.File(tmp_path / "s.h5", "r+") as file:
        del file["class_ids"]
        file.create_dataset("class_ids", (3, 1 << 40), np.int32, chunks=(1, 1 << 20))
    with pytest.raises(DataError, match="'class_ids' claims 13194139533312 bytes"):
        FeatureStore(tmp_path / "s.h5")
