"""The feature store: records are read as they were written, after any kill of the writer; other files are refused."""

import json
import os
import pickle
import platform
import random
import signal
import subprocess
import sys
import textwrap
import time
from types import SimpleNamespace

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.stores import FINGERPRINT, assert_same_record, fill, record

from mmgen.errors import DataError, RunError
from mmgen.features.journal import Journal
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.files import image_key


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("COCO_train2014_000000314392.jpg", "314392"),
        ("a/b/000000314392.jpg", "314392"),
        ("COCO_val2014_000000000042", "42"),
        ("2083", "2083"),
        ("my photo.v2.JPEG", "my photo.v2"),
        ("n161313.npz", "n161313"),
        ("0042.png", "0042"),
    ],
)
def test_keys_of_images(name, key):
    assert image_key(name) == key


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


def test_compressed_only_where_smaller(tmp_path):
    noisy = fill(tmp_path / "noisy.h5", [record(str(i), 36, 64, i) for i in range(8)], "float16")
    sparse = fill(tmp_path / "sparse.h5", [record(str(i), features=np.eye(3, 64, dtype=np.float32)) for i in range(8)])
    assert (noisy.describe()["compression"], sparse.describe()["compression"]) == ("none", "gzip")


def test_an_image_is_a_chunk(tmp_path):
    fill(tmp_path / "s.h5", [record(str(i), 36, 64, i) for i in range(5)])
    with h5py.File(tmp_path / "s.h5") as file:
        assert file["features"].chunks == (36, 64)


def test_more_than_a_buffer(tmp_path, monkeypatch):
    monkeypatch.setattr("mmgen.features.layout.BUFFER_BYTES", 500)
    records = [record(str(i), i % 7, 4, i) for i in range(40)]
    store = fill(tmp_path / "s.h5", records)
    for expected in records[1:7]:
        assert_same_record(store.read(expected.key), expected)
    assert_same_record(store.read("39"), records[39])


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


# --- what cannot be stored ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"features": np.full((3, 4), np.nan)}, "image 'b': features are not finite (NaN or infinite)"),
        (
            {"features": np.full((3, 4), 1e6)},
            "image 'b': a feature of 1e+06 is too large for float16; store the features as float32",
        ),
        ({"features": np.ones((3, 5))}, "image 'b': features have width 5, but those of earlier images have width 4"),
        ({"features": np.ones(3)}, "image 'b': features must have shape (regions, width), but got (3,)"),
        (
            {"boxes": np.ones((2, 4))},
            "image 'b': boxes of shape (2, 4) for 3 regions; expected four finite numbers per region",
        ),
        (
            {"boxes": np.array([[0.5, 0, 0.2, 1]] * 3)},
            "image 'b': a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1",
        ),
        ({"region_names": ("one",)}, "image 'b': got 1 region names for 3 regions"),
        (
            {"scores": np.full(3, np.inf)},
            "image 'b': scores of shape (3,) for 3 regions; expected a finite number per region",
        ),
    ],
)
def test_refused_records(tmp_path, changes, message):
    with StoreWriter(tmp_path / "s.h5", FINGERPRINT) as writer:
        writer.add(record("a"))
        with pytest.raises(DataError) as error:
            writer.add(record("b", **changes))
        assert str(error.value) == message
        writer.finish()
    assert list(FeatureStore(tmp_path / "s.h5")) == ["a"]


def test_duplicates_and_boxes_outside_are_counted(tmp_path):
    with StoreWriter(tmp_path / "s.h5", FINGERPRINT) as writer:
        assert writer.add(record("a", 1, boxes=np.array([[-0.5, 0, 0.5, 1.5]])))
        assert not writer.add(record("a"))
        writer.finish()
    assert (writer.duplicates, writer.clipped) == (1, 1)
    assert FeatureStore(tmp_path / "s.h5").read("a").boxes.tolist() == [[0, 0, 0.5, 1]]


def test_nothing_to_put_in(tmp_path):
    with (
        StoreWriter(tmp_path / "s.h5", FINGERPRINT) as writer,
        pytest.raises(DataError, match="not created, because there are no features"),
    ):
        writer.finish()
    assert not names(tmp_path)


# --- going on -------------------------------------------------------------------------------------------------------


def test_goes_on_with_a_partial_store_and_a_finished_one(tmp_path):
    path = tmp_path / "s.h5"
    with StoreWriter(path, FINGERPRINT, "float32") as writer:
        writer.add(record("a", seed=1))
    assert names(tmp_path) == ["s.h5.partial"]
    for key in "bc":
        with StoreWriter(path, FINGERPRINT, "float32") as writer:
            assert "a" in writer.keys and key not in writer.keys
            writer.add(record(key, seed=ord(key)))
            writer.finish()
        assert names(tmp_path) == ["s.h5"]
    store = FeatureStore(path)
    assert list(store) == ["a", "b", "c"]
    assert_same_record(store.read("a"), record("a", seed=1))
    assert_same_record(store.read("c"), record("c", seed=ord("c")))


def test_another_extractor_or_dtype_is_refused(tmp_path):
    path = tmp_path / "s.h5"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
    for state in (f"{path}.partial", path):
        with pytest.raises(DataError) as error:
            StoreWriter(path, {**FINGERPRINT, "digest": "cd34"})
        assert (
            str(error.value)
            == f"{state}: contains features with a different fingerprint (digest: ab12 there, cd34 here); delete "
            "the file, or write elsewhere"
        )
        with pytest.raises(DataError, match=r"with a different dtype \(float16 there, float32 here\)"):
            StoreWriter(path, FINGERPRINT, "float32")
        with StoreWriter(path, FINGERPRINT) as writer:
            writer.finish()


def test_one_writer_at_a_time(tmp_path):
    with StoreWriter(tmp_path / "s.h5", FINGERPRINT), pytest.raises(DataError) as error:
        StoreWriter(tmp_path / "s.h5", FINGERPRINT)
    advice = "wait until that process ends (the same command then adds missing features), or write elsewhere"
    assert (
        str(error.value)
        == f"{tmp_path}/s.h5: process {os.getpid()} on {platform.node()} is writing this store; {advice}"
    )


def test_killed_between_naming_the_store_and_deleting_the_journal(tmp_path):
    path = tmp_path / "s.h5"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
    journal = (tmp_path / "s.h5.partial").read_bytes()
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.finish()
    (tmp_path / "s.h5.partial").write_bytes(journal)
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("b"))
        writer.finish()
    assert list(FeatureStore(path)) == ["a", "b"]


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_journal_cut_anywhere_keeps_every_whole_record(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("journal") / "j"
    journal, ends = Journal(path, {"what": "test"}), [0]
    ends = [path.stat().st_size]
    for number in range(4):
        journal.append(record(str(number), number, seed=number))
        ends.append(path.stat().st_size)
    journal.close()
    cut = data.draw(st.integers(0, ends[-1]))
    with path.open("r+b") as file:
        file.truncate(cut)
    again = Journal(path, {"what": "test"})
    complete = max(sum(end <= cut for end in ends) - 1, 0)
    assert [entry.key for entry in again.entries] == [str(number) for number in range(complete)]
    again.append(record("new"))
    again.close()
    last = Journal(path, {})
    assert last.purpose == {"what": "test"} and [entry.key for entry in last.entries][-1] == "new"
    assert_same_record(last.read(last.entries[-1]), record("new"))
    last.close()


@pytest.mark.slow
def test_a_full_disk_while_filling_keeps_what_is_there(tmp_path, monkeypatch):
    """A full disk is not reported as a fault of the image that was being written."""
    path = tmp_path / "s.h5"
    full = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (9_000, resource.RLIM_INFINITY)); "
        "exec(sys.argv.pop(1))"
    )
    ran = subprocess.run(
        [sys.executable, "-c", full, textwrap.dedent(SLOW_WRITER), str(path)], capture_output=True, text=True
    )
    assert (
        f"mmgen.errors.RunError: {path}.partial: cannot be written: File too large; the file has 0 images; "
        "re-run the same command to continue" in ran.stderr
    )
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
        monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=5000))
        with pytest.raises(RunError) as error:
            writer.finish()
    assert str(error.value) == (
        f"{path}: cannot be written: not enough disk space: up to 1 MB needed, 0 MB free; "
        f"the features are saved in {path}.partial; re-run the same command to continue"
    )
    monkeypatch.undo()
    assert list(fill(path, [record("b")], "float16")) == ["a", "b"]


def test_a_folder_that_cannot_be_written_is_reported():
    with pytest.raises(RunError) as error:
        StoreWriter("/proc/here/s.h5", FINGERPRINT)
    assert str(error.value) == "/proc/here/s.h5: cannot be written: No such file or directory; write elsewhere"


def test_something_else_under_the_partial_name_is_left_alone(tmp_path):
    (tmp_path / "s.h5.partial").write_text("my notes\n")
    with pytest.raises(DataError) as error:
        StoreWriter(tmp_path / "s.h5", FINGERPRINT)
    assert (
        str(error.value)
        == f"{tmp_path}/s.h5.partial: not a partial feature store; move or rename this file, because its name is needed"
    )
    assert (tmp_path / "s.h5.partial").read_text() == "my notes\n"


SLOW_WRITER = """
    import sys, time
    import numpy as np
    from mmgen.features.writer import StoreWriter
    from mmgen.parts import Record
    with StoreWriter(sys.argv[1], {"extractor": "test"}, "float32") as writer:
        for number in range(160):
            features = np.random.default_rng(number).standard_normal((7, 400)).astype(np.float32)
            if str(number) not in writer.keys:
                writer.add(Record(str(number), features))
                print(number, flush=True)
                time.sleep(0.003)
        writer.finish()
"""


@pytest.mark.exhaustive
@pytest.mark.slow
def test_killed_again_and_again(tmp_path):
    """kill -9 at random moments, assembling included: every reported record is in the store at the end, unchanged."""
    path, rng, kills = tmp_path / "s.h5", random.Random(3), 0
    for _ in range(40):
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(SLOW_WRITER), str(path)], stdout=subprocess.PIPE, text=True
        )
        process.stdout.readline()
        time.sleep(rng.uniform(0.05, 0.3))
        process.send_signal(signal.SIGKILL)
        reported = [int(line) for line in process.stdout.read().split()]
        kills += process.wait() == -signal.SIGKILL
        if path.exists():
            break
        journal = Journal(tmp_path / "s.h5.partial", {})
        assert {str(number) for number in reported} <= {entry.key for entry in journal.entries}
        journal.close()
    assert kills >= 2
    subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SLOW_WRITER), str(path)], check=True, stdout=subprocess.DEVNULL
    )
    store = FeatureStore(path)
    assert sorted(store, key=int) == [str(number) for number in range(160)]
    for number in range(160):
        expected = np.random.default_rng(number).standard_normal((7, 400)).astype(np.float32)
        assert np.array_equal(store.read(str(number)).features, expected)


# --- what is no store -----------------------------------------------------------------------------------------------


def spoilt(tmp_path, spoil):
    fill(tmp_path / "s.h5", [record("a"), record("b")]).close()
    with h5py.File(tmp_path / "s.h5", "r+") as file:
        spoil(file)
    with pytest.raises(DataError) as error:
        FeatureStore(tmp_path / "s.h5")
    assert "\n" not in str(error.value)
    return str(error.value).removeprefix(f"{tmp_path}/s.h5: ")


def replaced(name, value):
    def spoil(file):
        del file[name]
        if value is not None:
            file[name] = value

    return spoil


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
        (
            replaced("features", h5py.ExternalLink("/etc/passwd", "/x")),
            "not a feature store, or damaged: 'features' is a link, and links are not followed",
        ),
        (
            replaced("keys", h5py.SoftLink("/boxes")),
            "not a feature store, or damaged: 'keys' is a link, and links are not followed",
        ),
        (replaced("features", None), "not a feature store, or damaged: 'features' is missing"),
        (
            replaced("keys", np.array([b"", b"\xff"])),
            "not a feature store, or damaged: 'keys' is not valid UTF-8",
        ),
        (
            replaced("ends", np.array([9, 3])),
            "not a feature store, or damaged: the sizes of 'keys', 'ends' and 'features' do not match",
        ),
        (
            replaced("boxes", np.zeros((1, 4), np.float32)),
            "not a feature store, or damaged: 'boxes' and 'features' differ in length",
        ),
        (
            replaced("features", np.zeros((6, 4), int)),
            "not a feature store, or damaged: 'features' is int64 of shape (6, 4)",
        ),
    ],
)
def test_foreign_and_spoilt_files(tmp_path, spoil, message):
    assert spoilt(tmp_path, spoil) == message


def test_sizes_are_checked_before_memory_is_taken(tmp_path):
    def spoil(file):
        del file["ends"]
        file.create_dataset("ends", (1 << 45,), np.int64, chunks=(1 << 20,))  # 256 TB of nothing

    assert spoilt(tmp_path, spoil).startswith("not a feature store, or damaged: 'ends' claims 281474976710656 bytes")


def test_external_and_virtual_storage_is_refused(tmp_path):
    (tmp_path / "raw").write_bytes(bytes(96))

    def external(file):
        del file["features"]
        file.create_dataset("features", (6, 4), np.float32, external=[(str(tmp_path / "raw"), 0, 96)])

    assert spoilt(tmp_path, external).endswith("'features' is not stored in the file itself")


def test_not_hdf5(tmp_path):
    (tmp_path / "s.h5").write_text("hello")
    with pytest.raises(DataError, match="not a feature store, or damaged: "):
        FeatureStore(tmp_path / "s.h5")


def test_damaged_inside(tmp_path):
    features = np.zeros((3, 4096), np.float32)
    features[:, ::7] = 1
    fill(tmp_path / "s.h5", [record(str(i), features=features * i) for i in range(30)]).close()
    with h5py.File(tmp_path / "s.h5") as file:
        chunk = file["features"].id.get_chunk_info(9)
    with (tmp_path / "s.h5").open("r+b") as file:
        file.seek(chunk.byte_offset)
        file.write(b"\xff" * 20)
    with pytest.raises(DataError, match="image '9' cannot be read: .*; the file is damaged; create it again"):
        FeatureStore(tmp_path / "s.h5").read("9")


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


def test_one_turned_bit_is_refused_or_changes_nothing(tmp_path):
    records = [record(str(number), 2, seed=number) for number in range(4)]
    fill(tmp_path / "s.h5", records).close()
    data, draw, refused = (tmp_path / "s.h5").read_bytes(), random.Random(0), 0
    for place in [*range(8, 48), *draw.sample(range(len(data)), 80)]:  # the superblock, and anywhere
        path = tmp_path / f"{place}.h5"  # HDF5 would not read a name anew that it still has open
        path.write_bytes(data[:place] + bytes([data[place] ^ 1 << draw.randrange(8)]) + data[place + 1 :])
        try:
            store = FeatureStore(path)
            for read, wrote in zip(store.records(), records, strict=True):
                assert_same_record(read, wrote)
            assert store.fingerprint == FINGERPRINT
        except DataError:
            refused += 1
    assert refused > 100


def test_stores_from_before_there_were_checksums_are_read(tmp_path):
    fill(tmp_path / "new.h5", [record("a"), record("b")]).close()
    with h5py.File(tmp_path / "new.h5") as new, h5py.File(tmp_path / "old.h5", "w") as old:
        for name, dataset in new.items():
            old.create_dataset(name, data=dataset[:], dtype=dataset.dtype)
        old.attrs.update({"format": "mmgen features", "version": 1, "fingerprint": json.dumps(FINGERPRINT)})
    store = FeatureStore(tmp_path / "old.h5")
    assert store.fingerprint == FINGERPRINT
    for key in ("a", "b"):
        assert_same_record(store.read(key), record(key))


# --- memory ---------------------------------------------------------------------------------------------------------

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
