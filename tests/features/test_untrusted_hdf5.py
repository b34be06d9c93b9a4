"""Untrusted HDF5 files on which libhdf5 itself loops, uses all memory or crashes: refused with a message in one
line."""

import re
import signal
import struct
import subprocess
import sys

import h5py
import numpy as np
import pytest
from click.testing import CliRunner

from mmgen.cli import main
from mmgen.errors import DataError, RunError
from mmgen.features import untrusted_hdf5 as hdf5
from mmgen.features.store import FeatureStore
from mmgen.features.writer import StoreWriter
from mmgen.parts import Record

pytestmark = pytest.mark.slow

ADVICE = "; the file is damaged or malicious; download or create it again"


def old_store(path):
    """A store without checksums, as older versions wrote it; its texts are in a heap."""
    with h5py.File(path, "w") as file:
        file.attrs.update({"format": "mmgen features", "version": 1, "fingerprint": '{"extractor": "toy"}'})
        file["keys"], file["ends"] = np.array([b"a", b"b"]), np.array([2, 3])
        file["features"] = np.arange(12, dtype=np.float32).reshape(3, 4)
    return path


def patched(path, place, number):
    data = path.read_bytes()
    path.write_bytes(data[:place] + struct.pack("<Q", number) + data[place + 8 :])
    return path


def endless_heap(path):
    """The heap of texts ends with an object that stores the free space; with size 0, it refers to itself."""
    data = path.read_bytes()
    place = data.index(b"GCOL") + 16
    while number := int.from_bytes(data[place : place + 2], "little"):
        size = int.from_bytes(data[place + 8 : place + 16], "little")
        place += 16 + -(-size // 8) * 8
    assert number == 0
    return patched(path, place + 8, 0)


def endless_list(path):
    """The free space in the heap of names is a list, whose first item refers to itself."""
    content = path.read_bytes()
    free, data = struct.unpack_from("<QQ", content, content.index(b"HEAP") + 16)
    return patched(path, data + free, free)


def refused(path):
    with pytest.raises(DataError) as raised:
        FeatureStore(path)
    return str(raised.value)


def test_a_file_that_libhdf5_never_ends_with(tmp_path, monkeypatch):
    monkeypatch.setattr(hdf5, "SECONDS", 1)
    path = endless_heap(old_store(tmp_path / "s.h5"))
    message = f"{path}: not opened: libhdf5 did not finish reading the file in 1 s of CPU time{ADVICE}"
    assert refused(path) == message
    done = CliRunner().invoke(main, ["features", "info", str(path)])
    assert (done.exit_code, done.output) == (1, f"error: {message}\n")


def test_a_file_over_which_libhdf5_takes_memory_without_end(tmp_path):
    path = endless_list(old_store(tmp_path / "s.h5"))
    assert refused(path) == f"{path}: not opened: libhdf5 used too much memory while reading the file{ADVICE}"


def test_published_features_are_walked_through_as_well(tmp_path):
    with h5py.File(tmp_path / "l.h5", "w") as file:
        file["image_features"], file["pos_boxes"] = np.ones((6, 4), np.float32), np.array([[0, 2], [2, 6]])
    (tmp_path / "index.json").write_text('["1", "2"]')
    arguments = [
        "features",
        "import",
        str(tmp_path / "l.h5"),
        str(tmp_path / "s.h5"),
        "--type",
        "lxmert_h5",
        "--set",
        f'index="{tmp_path}/index.json"',
    ]
    good = CliRunner().invoke(main, arguments)
    assert good.exit_code == 0 and len(FeatureStore(tmp_path / "s.h5")) == 2, good.output
    (tmp_path / "s.h5").unlink()
    endless_list(tmp_path / "l.h5")
    done = CliRunner().invoke(main, arguments)
    assert (done.exit_code, done.output) == (
        1,
        f"error: {tmp_path}/l.h5: not opened: libhdf5 used too much memory while reading the file{ADVICE}\n",
    )
    assert not (tmp_path / "s.h5").exists()


def test_a_file_over_which_libhdf5_crashes(tmp_path, monkeypatch):
    (tmp_path / "walk.py").write_text("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)")
    monkeypatch.setattr(hdf5, "WALK", tmp_path / "walk.py")
    path = old_store(tmp_path / "s.h5")
    assert refused(path) == f"{path}: not opened: libhdf5 crashed while reading the file (Segmentation fault){ADVICE}"


@pytest.mark.parametrize(
    ("walk", "reason"),
    [
        ("import no_such_module", "ModuleNotFoundError: No module named 'no_such_module'"),
        ("raise SystemExit(9)", "no error message"),
        (None, "No such file or directory"),
    ],
)
def test_a_walk_that_cannot_be_begun_is_not_the_files_fault(tmp_path, monkeypatch, walk, reason):
    if walk is None:
        monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    else:
        (tmp_path / "walk.py").write_text(walk)
        monkeypatch.setattr(hdf5, "WALK", tmp_path / "walk.py")
    path = old_store(tmp_path / "s.h5")
    with pytest.raises(RunError) as raised:
        FeatureStore(path)
    assert str(raised.value).startswith(f"{path}: cannot start the process that checks the file before it is opened: ")
    assert reason in str(raised.value) and str(raised.value).endswith(
        f"; make sure that `{sys.executable} -c 'import h5py'` works"
    )


@pytest.fixture
def walks(monkeypatch):
    """The files that are checked by walking through them."""
    walked, run = [], subprocess.run

    def counted(command, **more):
        walked.append(command[3].rpartition("/")[2])
        return run(command, **more)

    monkeypatch.setattr(hdf5.subprocess, "run", counted)
    return walked


def test_a_file_is_walked_through_once_until_it_changes(tmp_path, walks):
    path = old_store(tmp_path / "s.h5")
    for _ in range(3):
        assert FeatureStore(path).read("b").features.tolist() == [[8, 9, 10, 11]]
    assert walks == ["s.h5"]
    with h5py.File(path, "r+") as file:
        file["features"][2] = 7
    assert FeatureStore(path).read("b").features.tolist() == [[7, 7, 7, 7]]
    assert walks == ["s.h5", "s.h5"]


@pytest.mark.parametrize("settings", ["x", "x" * 100_000], ids=["little", "much"])
def test_stores_with_checksums_are_opened_at_once(tmp_path, walks, settings):
    """(A fingerprint of over 64 KB is stored elsewhere in the file, and so is the format.)"""
    with StoreWriter(tmp_path / "s.h5", {"extractor": settings}) as writer:
        writer.add(Record("a", np.ones((2, 4), np.float32)))
        writer.finish()
    assert FeatureStore(tmp_path / "s.h5").read("a").features.tolist() == [[1] * 4] * 2
    assert walks == (["s.h5"] if len(settings) > 1 << 16 else [])


@pytest.mark.parametrize("versions", ["earliest", "latest"])
def test_a_file_without_checksums_over_its_texts_is_walked_through(tmp_path, walks, versions):
    """The newest layout has checksums, but not for texts of variable length, such as strings in attributes."""
    with h5py.File(tmp_path / "s.h5", "w", libver=versions) as file:
        file.attrs["format"] = "mmgen features"
    assert re.search("'version'|version None", refused(tmp_path / "s.h5"))
    assert walks == ["s.h5"]


def test_what_is_wrong_in_an_orderly_way_is_reported_by_the_reader(tmp_path, walks):
    (tmp_path / "s.h5").write_text("hello")
    assert refused(tmp_path / "s.h5").startswith(f"{tmp_path}/s.h5: not a feature store, or damaged: ")
    assert walks == ["s.h5"]


def test_the_walk_takes_no_more_than_it_is_given(tmp_path):
    """It is limited in time and memory, and reports which limit was reached."""
    names = ["format", "features", "nothing"]

    def walk(path, seconds):
        return subprocess.run(
            [sys.executable, "-P", hdf5.WALK, path, str(seconds), *names], capture_output=True, text=True
        )

    path = old_store(tmp_path / "s.h5")
    assert walk(path, 10).returncode == 0
    assert walk(endless_heap(path), 1).returncode == -signal.SIGXCPU
    assert walk(tmp_path / "none.h5", 10).returncode == 0
