"""Writing a feature store: after any kill of the writer, the next one continues."""

import os
import platform
import random
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest
from kit.stores import FINGERPRINT, SLOW_WRITER, assert_same_record, names, record

from mmgen.errors import DataError, RunError
from mmgen.features.journal import Journal
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter, remove_leftovers


def test_duplicates_and_boxes_outside_are_counted(tmp_path):
    with StoreWriter(tmp_path / "s.h5", FINGERPRINT) as writer:
        assert writer.add(record("a", 1, boxes=np.array([[-0.5, 0, 0.5, 1.5]])))
        assert not writer.add(record("a"))
        writer.finish()
    assert writer.clipped == 1
    assert FeatureStore(tmp_path / "s.h5").read("a").boxes.tolist() == [[0, 0, 0.5, 1]]


def test_nothing_to_put_in(tmp_path):
    with (
        StoreWriter(tmp_path / "s.h5", FINGERPRINT) as writer,
        pytest.raises(DataError, match="not created: no features to store"),
    ):
        writer.finish()
    assert not names(tmp_path)


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


def test_what_a_writer_leaves_that_is_killed_after_its_store_has_its_name_is_removed(tmp_path):
    path, partial, lock = (tmp_path / name for name in ("s.h5", "s.h5.partial", "s.h5.lock"))
    with StoreWriter(path, FINGERPRINT, "float32") as writer:
        writer.add(record("a"))
        journal = partial.read_bytes()
        writer.finish()
    number = path.stat().st_ino
    partial.write_bytes(journal)
    lock.write_text("process 1 on here")
    remove_leftovers(path)
    assert names(tmp_path) == ["s.h5"]
    partial.write_bytes(journal)
    with StoreWriter(path, FINGERPRINT, "float32") as writer:  # the next writer does not write the store again
        assert writer.waiting == 0
        writer.finish()
    assert names(tmp_path) == ["s.h5"] and path.stat().st_ino == number
    with StoreWriter(path, FINGERPRINT, "float32") as writer:
        writer.add(record("b"))
        remove_leftovers(path)  # another process writes
        assert names(tmp_path) == ["s.h5", "s.h5.lock", "s.h5.partial"]
    remove_leftovers(path)  # the journal has more than the store
    assert names(tmp_path) == ["s.h5", "s.h5.partial"]


def test_what_is_left_is_removed_through_a_link_too(tmp_path):
    (tmp_path / "linked").mkdir()
    path, link = tmp_path / "linked/s.h5", tmp_path / "s.h5"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
        writer.finish()
    link.symlink_to(path)
    Path(f"{path}.lock").write_text("process 1 on here")
    remove_leftovers(link)
    assert names(tmp_path / "linked") == ["s.h5"]


def test_leftovers_that_must_not_be_removed_stop_nothing(tmp_path, monkeypatch):
    path, lock = tmp_path / "s.h5", tmp_path / "s.h5.lock"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
        writer.finish()
    lock.write_text("process 1 on here")
    unlink = Path.unlink

    def forbidden(self, missing_ok=False):
        if self == lock:
            raise PermissionError(13, "Permission denied", str(self))
        unlink(self, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", forbidden)
    remove_leftovers(path)
    assert names(tmp_path) == ["s.h5", "s.h5.lock"]


def test_the_journal_of_other_features_is_refused_and_kept(tmp_path):
    path, second = tmp_path / "s.h5", tmp_path / "second.h5"
    with StoreWriter(path, FINGERPRINT) as writer:
        writer.add(record("a"))
        writer.finish()
    with StoreWriter(second, {**FINGERPRINT, "digest": "cd34"}) as writer:
        writer.add(record("a"))
    journal = Path(f"{path}.partial")
    Path(f"{second}.partial").rename(journal)
    before = journal.read_bytes()
    with pytest.raises(DataError, match="contains features with a different fingerprint"):
        StoreWriter(path, FINGERPRINT)
    assert journal.read_bytes() == before


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


def test_a_folder_that_cannot_be_written_is_reported():
    with pytest.raises(RunError) as error:
        StoreWriter("/proc/here/s.h5", FINGERPRINT)
    assert str(error.value) == "/proc/here/s.h5: cannot be written: No such file or directory; write elsewhere"


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
