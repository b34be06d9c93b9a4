"""The feature store: records are read unchanged, after any kill of the writer; other files are refused."""

import json
import os
import pickle
import random
import subprocess
import sys
import textwrap
from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.refusals import refusal
from kit.stores import FINGERPRINT, assert_same_record, fill, names, record

from mmgen.errors import DataError
from mmgen.features.embedder import measure
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    regions=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    parts=st.lists(st.sets(st.sampled_from(["boxes", "region_names", "scores"])), min_size=12, max_size=12),
    keys=st.lists(
        st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), min_size=1, max_size=9),
        min_size=12,
        max_size=12,
        unique=True,
    ),
)
def test_what_goes_in_comes_out(tmp_path_factory, regions, parts, keys):
    path = tmp_path_factory.mktemp("store") / "s.h5"
    records = []
    for number, count in enumerate(regions):
        absent = dict.fromkeys({"boxes", "region_names", "scores"} - parts[number])
        records.append(record(keys[number], count, seed=number, **absent))
    store = fill(path, records)
    assert list(store) == [expected.key for expected in records]
    assert len(store) == len(records) and store.width == 4 and store.fingerprint == FINGERPRINT
    for expected in random.Random(0).sample(records, len(records)):
        if len(expected.features):  # of no regions, no box is known and none is unknown
            assert_same_record(store.read(expected.key), expected)
        assert store.read(expected.key).features.shape == expected.features.shape
    assert names(path.parent) == ["s.h5"]


def test_limit_describe_and_half_precision(tmp_path):
    store = fill(tmp_path / "s.h5", [record("a", 5), record("b", 0), record("c", 2)], "float16")
    assert store.read("a", limit=2).boxes.shape == (2, 4)
    assert store.read("a").features.dtype == np.float16
    about = store.describe()
    assert about["regions per image"] == [0, 2.3, 5] and about["images without regions"] == 1
    assert about["holds"] == ["features", "boxes", "scores", "labels"] and about["dtype"] == "float16"


def test_pickled_and_forked(tmp_path):
    store = fill(tmp_path / "s.h5", [record("a")])
    assert_same_record(pickle.loads(pickle.dumps(store)).read("a"), record("a"))
    store.read("a")
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(store.read("a").features, record("a").features) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_missing_image_and_missing_file(tmp_path):
    store = fill(tmp_path / "s.h5", [record("a")])
    assert "a" in store and "b" not in store and 7 not in store
    with pytest.raises(DataError) as error:
        store.read("b")
    assert (
        str(error.value)
        == f"{tmp_path}/s.h5: no features for image 'b'; the store has 1 images (for example 'a'); extract or import "
        "the "
        "missing features, or leave the image out"
    )
    with pytest.raises(DataError) as error:
        FeatureStore(tmp_path / "no.h5")
    assert (
        str(error.value)
        == f"{tmp_path}/no.h5: no such file; create features with `mmgen features extract` or `mmgen features import`"
    )


def spoilt(tmp_path, spoil):
    fill(tmp_path / "s.h5", [record("a"), record("b")]).close()
    with h5py.File(tmp_path / "s.h5", "r+") as file:
        spoil(file)
    with pytest.raises(DataError) as error:
        FeatureStore(tmp_path / "s.h5")
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{tmp_path}/s.h5: ")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (
            lambda f: f.attrs.__delitem__("format"),
            "an HDF5 file, but not a feature store; convert published features with `mmgen features import`",
        ),
        (
            lambda f: f.attrs.__setitem__("version", 9),
            "feature store of version 9, but this mmgen reads version 1; create the features again",
        ),
    ],
)
def test_files_of_others_and_of_another_version(tmp_path, spoil, message):
    assert spoilt(tmp_path, spoil) == message


def test_every_part_of_a_store_carries_a_checksum(tmp_path):
    fill(tmp_path / "s.h5", [record("a"), record("b", 2)]).close()
    with h5py.File(tmp_path / "s.h5") as file:
        assert (
            file.id.get_create_plist().get_version()[0] == 3
        )  # of the superblock: from 2 on all that describes the file has one
        assert len(file) == 7 and all(dataset.fletcher32 for dataset in file.values())
        assert {type(value) for value in file.attrs.values()} == {
            np.bytes_,
            np.int64,
        }  # texts of unlike length lie where nothing is checked


def test_no_part_of_a_store_has_a_time(tmp_path):
    """Else the same records make other bytes a second later."""
    fill(tmp_path / "s.h5", [record("a")]).close()
    with h5py.File(tmp_path / "s.h5") as file:
        parts = [file["/"], *file.values()]
        assert len(parts) > 3
        assert not any(part.id.get_create_plist().get_obj_track_times() for part in parts)


MEASURE = """
    import json, resource, sys
    import numpy as np
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record
    from mmgen.features.store import FeatureStore

    def peak():
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

    def records(count):
        rng = np.random.default_rng(0)
        for number in range(count):
            yield Record(str(number), rng.standard_normal((36, 1024), np.float32))

    def write(path, count):
        with StoreWriter(path, {}, "float32") as writer:
            for record in records(count):
                writer.add(record)
            writer.finish()

    write(sys.argv[1] + "/small.h5", 220)  # more than a buffer, so that everything has been used once
    FeatureStore(sys.argv[1] + "/small.h5").read("7")
    before = peak()
    write(sys.argv[1] + "/large.h5", 1400)
    written = peak()
    store = FeatureStore(sys.argv[1] + "/large.h5")
    total = sum(float(store.read(key).features[0, 0]) for key in store)
    print(json.dumps([before, written, peak(), store.path.stat().st_size >> 20]))
"""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_memory_stays_flat_however_large_the_store(tmp_path):
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURE), str(tmp_path)], capture_output=True, text=True, check=True
    )
    before, written, read, size = json.loads(ran.stdout)
    assert size > 190  # MB
    assert written - before < 24 and read - written < 16, (before, written, read)


def store(path: Path, **spoilt) -> Path:
    with StoreWriter(path, {"extractor": "test"}, "float32") as writer:
        for number, key in enumerate("ab"):
            writer.add(
                Record(
                    key, np.ones((2, 4), np.float32) + number, np.array([[0, 0, 1, 1]] * 2, np.float32), ("cat", "dog")
                )
            )
        writer.finish()
    with h5py.File(path, "r+") as file:
        for name, value in spoilt.items():
            if name == "fingerprint":
                file.attrs[name] = value
            else:
                file[name][0] = value
    return path


@pytest.mark.slow
def test_a_label_without_a_name_and_features_that_are_not_finite(tmp_path):
    path = store(tmp_path / "s.h5", labels=7)
    assert (
        refusal(FeatureStore(path).read, "a")
        == f"{path}: image 'a' has label 7, but there are only 2 label names; the file is damaged"
    )
    path = store(tmp_path / "n.h5", features=np.nan)
    assert (
        refusal(measure, FeatureStore(path), None)
        == f"{path}: features are not finite (NaN or infinite); create them again"
    )
