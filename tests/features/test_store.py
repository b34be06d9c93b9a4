"""The feature store: records are read unchanged, after any kill of a writer, from several parts; others are refused."""

import json
import os
import pickle
import random
import signal
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import h5py
import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit import toys
from kit.refusals import refusal
from kit.stored import embedder
from kit.stores import FINGERPRINT, NAMES, SLOW_WRITER, assert_same_record, classes, classified, fill, names, record

from mmgen.errors import RunError
from mmgen.features import writer as writing
from mmgen.features.extract import Shard
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    regions=st.lists(st.integers(0, 9), min_size=1, max_size=12),
    fields=st.lists(st.sets(st.sampled_from(["boxes", "region_names", "scores", "classes"])), min_size=12, max_size=12),
    keys=st.lists(st.text(max_size=9), min_size=12, max_size=12, unique=True),
    size=st.integers(1, 300),
)
def test_what_goes_in_comes_out(tmp_path_factory, regions, fields, keys, size):
    path, records = tmp_path_factory.mktemp("stores") / "s", []
    for number, count in enumerate(regions):
        absent = dict.fromkeys({"boxes", "region_names", "scores", "classes"} - fields[number])
        records.append(replace(classified(keys[number], count, seed=number), **absent))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(writing, "PART_BYTES", size)
        store = fill(path, records)
    assert list(store) == [expected.key for expected in records]
    assert len(store) == len(records) and store.width == 4 and store.fingerprint == FINGERPRINT
    for expected in random.Random(0).sample(records, len(records)):
        known = expected.classes is not None and expected.classes.known.any()
        expected = expected if known else replace(expected, classes=None)
        if len(expected.features):  # of no regions, no box is known and none is unknown
            assert_same_record(store.read(expected.key), expected)
        assert store.read(expected.key).features.shape == expected.features.shape
        assert store.count(expected.key) == len(expected.features)
    for part in store.parts:
        part.check()


def test_one_file_is_a_store_of_one_part(tmp_path):
    fill(tmp_path / "s", [record("a")])
    assert_same_record(FeatureStore(tmp_path / "s/part-00000.h5").read("a"), record("a"))
    with h5py.File(tmp_path / "s/part-00000.h5") as file:  # as others read it
        assert json.loads(file["keys"][:].tobytes()) == ["a"] and json.loads(file.attrs["fingerprint"]) == FINGERPRINT
        assert np.array_equal(file["features"], record("a").features) and file["ends"][:].tolist() == [3]


def test_pickled_and_forked(tmp_path):
    store = fill(tmp_path / "s", [record("a")])
    assert_same_record(pickle.loads(pickle.dumps(store)).read("a"), record("a"))
    store.read("a")
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(store.read("a").features, record("a").features) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_missing_image(tmp_path):
    store = fill(tmp_path / "s", [record("a")])
    assert "a" in store and "b" not in store and 7 not in store and store.count("b") == 0
    assert refusal(store.read, "b") == (
        f"{tmp_path}/s: no features for image 'b'; the store has 1 images (for example 'a'); extract or import the "
        "missing features, or leave the image out"
    )


def test_several_parts_are_one_store_and_a_model_does_not_care(tmp_path):
    keys = "badcé"
    records = [classified(key, 2 + number, seed=number) for number, key in enumerate(keys)]
    for entry in records:
        several = fill(tmp_path / "several", [entry])
    single = fill(tmp_path / "single", records)
    assert len(several.parts) == 5 and list(several) == list(single) == list(keys)
    assert several.class_names == NAMES and several.describe()["classes"] == 4
    for key in keys:
        assert_same_record(several.read(key), single.read(key))
    ours, theirs = (embedder(features=store.path, normalize="standard") for store in (several, single))
    assert ours.inferred_settings() == theirs.inferred_settings()
    assert torch.equal(ours.projection.weight, theirs.projection.weight) and torch.equal(ours.mean, theirs.mean)


def test_parts_of_unlike_features_are_refused(tmp_path):
    fill(tmp_path / "s", [classified("a")])
    other = fill(tmp_path / "t", [record("z")], fingerprint={**FINGERPRINT, "model": "resnet50"}).path
    (other / "part-00000.h5").rename(tmp_path / "s/z.h5")
    change = '(fingerprint.model: "resnet18" -> "resnet50"); use one extractor'
    message = f"{tmp_path}/s/z.h5: made differently than {tmp_path}/s/part-00000.h5 {change}"
    assert refusal(FeatureStore, tmp_path / "s") == message
    fill(tmp_path / "u", [record("z", classes=classes(names=NAMES[::-1]))])
    (tmp_path / "u/part-00000.h5").rename(tmp_path / "s/z.h5")
    assert "(class names)" in refusal(FeatureStore, tmp_path / "s")


# --- writing


def test_another_extractor_or_dtype_is_refused(tmp_path):
    path = tmp_path / "s"
    fill(path, [record("a")], "float16")
    for fingerprint, dtype, problem in (
        ({**FINGERPRINT, "digest": "cd34"}, "float16", 'fingerprint.digest: "ab12" -> "cd34"'),
        (FINGERPRINT, "float32", 'dtype: "float16" -> "float32"'),
    ):
        assert refusal(fill, path, [record("b")], dtype, fingerprint) == (
            f"{path}: has other features ({problem}); delete them, or write elsewhere"
        )
    (tmp_path / "file").touch()
    with pytest.raises(RunError, match="file: cannot be written: File exists; name another folder"):
        fill(tmp_path / "file", [record("a")])


def test_what_a_killed_writer_leaves_is_removed(tmp_path):
    path = tmp_path / "s"
    fill(path, [record("a")])
    (path / ".part-00001.h5.77.partial").write_bytes(b"half of it")
    (path / ".shard-1-of-2-00000.h5.78.partial").write_bytes(b"of a writer that may be at work")
    assert list(FeatureStore(path)) == ["a"]
    fill(path, [record("b")])
    assert names(path) == [".part.lock", ".shard-1-of-2-00000.h5.78.partial", "part-00000.h5", "part-00001.h5"]


def test_a_part_is_written_after_a_minute_and_when_an_error_ends_the_work(tmp_path, monkeypatch):
    path, now = tmp_path / "s", [0.0]
    monkeypatch.setattr(writing.time, "monotonic", lambda: now[0])
    with pytest.raises(KeyboardInterrupt), StoreWriter(path, FINGERPRINT, "float32") as writer:
        writer.add(record("a"))
        assert not list(path.glob("*.h5"))
        now[0] = 61.0
        writer.add(record("b"))
        assert list(FeatureStore(path)) == ["a", "b"]
        writer.add(record("c"))
        raise KeyboardInterrupt
    assert list(FeatureStore(path)) == ["a", "b", "c"]


@pytest.mark.exhaustive
@pytest.mark.slow
def test_killed_again_and_again(tmp_path):
    """kill -9 at random moments: what is in the store stays, unchanged, and the work ends."""
    path, rng, kills, kept = tmp_path / "s", random.Random(3), 0, 0
    for _ in range(40):
        command = [sys.executable, "-c", textwrap.dedent(SLOW_WRITER), str(path)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        process.stdout.readline()
        time.sleep(rng.uniform(0.05, 0.3))
        process.send_signal(signal.SIGKILL)
        process.stdout.read()
        kills += process.wait() == -signal.SIGKILL
        stored = len(FeatureStore(path)) if list(path.glob("*.h5")) else 0
        assert stored >= kept
        kept = stored
    assert kills >= 2 and kept
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    store = FeatureStore(path)
    assert sorted(store, key=int) == [str(number) for number in range(160)]
    for number in range(160):
        expected = np.random.default_rng(number).standard_normal((7, 400)).astype(np.float32)
        assert np.array_equal(store.read(str(number)).features, expected)
    assert not list(path.glob("*partial"))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"features": np.full((3, 4), np.nan)}, "features are not finite, or too large for float16"),
        ({"features": np.full((3, 4), 1e9)}, "features are not finite, or too large for float16"),
        ({"features": np.zeros((3, 5))}, "features must be numbers (3, 4), not float64 (3, 5)"),
        ({"boxes": np.array([[0.5, 0, 0.1, 1]] * 3)}, "a box has x0 > x1 or y0 > y1; boxes must be x0, y0, x1, y1"),
        ({"region_names": ("a",)}, "got 1 region names for 3 regions"),
        (
            {"classes": classes(names=NAMES[::-1])},
            "the classes, or their number for each region, differ from ",
        ),
        (
            {"classes": replace(classes(), ids=np.array([[0, -2]] * 3))},
            "classes must be ids (3, k) from -1 to 3",
        ),
    ],
)
def test_what_cannot_be_kept_is_refused(tmp_path, change, why):
    with StoreWriter(tmp_path / "s", FINGERPRINT) as writer:
        writer.add(classified("a"))
        assert refusal(writer.add, record("b", **change)).startswith(f"image 'b': {why}")


# --- files of strangers, and damage


def spoilt(tmp_path, spoil):
    path = fill(tmp_path / "s", [record("a"), record("b")]).path / "part-00000.h5"
    with h5py.File(path, "r+") as file:
        spoil(file)
    return path


def put(file, name, value, **options):
    del file[name]
    file.create_dataset(name, data=value, **options)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda f: f.attrs.__delitem__("format"), "another format)"),
        (lambda f: f.__delitem__("features"), "'features'"),
        (lambda f: put(f, "ends", [9, 9]), "its datasets do not match"),
        (
            lambda f: put(f, "features", np.zeros((6, 4)), compression="gzip"),
            "'features' is not stored as numbers",
        ),
    ],
)
def test_files_that_are_no_part_of_a_store(tmp_path, spoil, message):
    said = refusal(FeatureStore, path := spoilt(tmp_path, spoil))
    assert said.startswith(f"{path}: not a part of a feature store, or damaged ({message}")


def test_a_changed_byte_is_found_and_a_short_file_is_refused(tmp_path):
    path = fill(tmp_path / "s", [record("a"), record("b")]).path / "part-00000.h5"
    done = toys.mmgen_here(tmp_path, "features", "info", "s")
    assert done.returncode == 0 and done.stdout.endswith("all checksums are right\n")
    store, content = FeatureStore(path), path.read_bytes()
    changed = bytearray(content)
    changed[content.index(store.read("a").features.tobytes())] ^= 1
    path.write_bytes(changed)
    done = toys.mmgen_here(tmp_path, "features", "info", "s")
    assert done.returncode == 1 and "s/part-00000.h5: damaged, its checksum differs" in done.stderr
    path.write_bytes(content[: len(content) // 2])
    assert "\n" not in refusal(FeatureStore, path)


def test_a_shard_does_not_change_from_version_to_version():
    keys = ("a", "b", "photo.jpg", "\ud800")
    assert [next(n for n in range(1, 9) if Shard(n, 8).owns(key)) for key in keys] == [8, 6, 2, 1]
