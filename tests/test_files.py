"""Locks: one holder at a time, named, and released when its process ends in any way. Files that cannot be written."""

import io
import lzma
import os
import platform
import signal
import socket
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.torch
import torch

from mmgen import files
from mmgen.errors import DataError, RecipeError, RunError
from mmgen.features.images import open_image
from mmgen.files import (
    clear_killed,
    foreign,
    image_key,
    locked,
    read_json,
    refuse_overwriting,
    write_atomically,
    write_folder,
    write_json,
    write_text,
)
from mmgen.inference.query import read_sources
from mmgen.reading.text import read_list
from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage.published_weights import read_published
from mmgen.storage.weights import read_tensors

LEAVES_A_CHILD = """
import os, signal, sys, time
from pathlib import Path
from mmgen.files import locked

with locked(Path(sys.argv[1]), lambda holder: None):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"x")  # it has let go of the lock: a fork does so before it goes on
        time.sleep(600)
    os.read(reading, 1)
    Path(sys.argv[2]).write_text(str(child))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def refuse(holder: str) -> None:
    raise RunError(holder)


def test_a_lock_says_who_holds_it(tmp_path):
    with locked(tmp_path / "lock", refuse), pytest.raises(RunError) as error, locked(tmp_path / "lock", refuse):
        pass
    assert str(error.value) == f"process {os.getpid()} on {platform.node()}"
    with locked(tmp_path / "lock", refuse):
        pass


def test_waiting_for_a_lock(tmp_path):
    holder, calls = locked(tmp_path / "lock", refuse), []
    holder.__enter__()

    def wait(who: str) -> None:
        calls.append(who)
        if len(calls) == 2:
            holder.__exit__(None, None, None)

    with locked(tmp_path / "lock", wait):
        assert len(calls) == 2


def test_a_killed_holder_lets_go_though_its_child_lives(tmp_path):
    lock, child = tmp_path / "lock", tmp_path / "child"
    killed = subprocess.run([sys.executable, "-c", LEAVES_A_CHILD, lock, child], stderr=subprocess.DEVNULL)
    try:
        assert killed.returncode == -signal.SIGKILL
        os.kill(int(child.read_text()), 0)  # still there
        with locked(lock, refuse):
            pass
    finally:
        os.kill(int(child.read_text()), signal.SIGKILL)


@pytest.mark.parametrize(
    ("error", "advice"),
    [
        (
            PermissionError(13, "Permission denied"),
            "; ask the owner of the folder for write permission, then",
        ),
        (OSError(28, "No space left on device"), ";"),
    ],
)
def test_what_helps_where_a_file_cannot_be_written(tmp_path, error, advice):
    def write(partial: Path) -> None:
        raise error

    with pytest.raises(RunError) as caught:
        write_atomically(tmp_path / "a.json", write)
    assert str(caught.value) == (
        f"{tmp_path}/a.json: cannot be written: {error.strerror}; existing files are unchanged{advice} "
        "re-run the same command to continue"
    )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def special(tmp_path):
    """Paths that are not regular files -> what they are, in messages."""
    (tmp_path / "real.json").write_text("{}")
    (tmp_path / "link").symlink_to("real.json")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "device").symlink_to("/dev/null")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(tmp_path / "socket"))
    kinds = {"link": "a link to real.json", "dangling": "a link to nowhere", "device": "a link to /dev/null"}
    kinds |= {"folder": "a folder", "pipe": "a named pipe", "socket": "a socket"}
    return {**{tmp_path / name: kind for name, kind in kinds.items()}, Path("/dev/full"): "a device"}


@pytest.mark.parametrize("write", [lambda path: write_text(path, "x"), lambda path: write_json(path, {})])
def test_only_a_regular_file_is_replaced(special, write):
    for path, what in special.items():
        before = path.lstat()
        with pytest.raises(RunError) as error:
            write(path)
        assert str(error.value) == f"{path}: is {what}, which would be replaced; choose another name"
        assert (path.lstat().st_mode, path.lstat().st_ino) == (before.st_mode, before.st_ino)
        with pytest.raises(RunError) as error:
            refuse_overwriting("--json", path)
        assert str(error.value) == f"--json {path}: is {what}, which would be replaced; choose another name"


def test_a_link_to_a_folder_is_not_replaced(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    with pytest.raises(RunError, match="link: is a link to folder, which would be replaced; choose another name"):
        write_folder(tmp_path / "link", lambda folder: None)
    write_folder(tmp_path / "folder", lambda folder: (folder / "x").touch())
    assert (tmp_path / "link/x").exists()


def test_files_of_a_run_are_not_overwritten(tmp_path):
    for name in ("recipe.json", "environment.json", "times.json", "answers.jsonl"):
        (tmp_path / name).write_text("{}")
    refuse_overwriting("--json", tmp_path / "answers.jsonl", [None, Path("x" * 5000), Path("a\0b")])
    with pytest.raises(RunError) as error:
        refuse_overwriting("--json", tmp_path / "times.json")
    message = f"--json {tmp_path}/times.json: is a file of a run and would be overwritten; choose another name"
    assert str(error.value) == message


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


def zipped(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, b"x")
    return file.getvalue()


def tarred():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a"))
    return file.getvalue()


def saved_array():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 1234\n"
STRANGERS = {  # kind -> content of a file of another kind than its name says, what mmgen says
    "page": (b"\n<!DOCTYPE html>\n<html><body>404</body>", "is a web page; download the file itself"),
    "html": (b"\xef\xbb\xbf<HTML lang=en>", "is a web page; download the file itself"),
    "lfs": (LFS, "is a Git LFS pointer, not the file itself; fetch the file with `git lfs pull`"),
    "tar": (tarred(), "is a tar archive; unpack it first"),
    "zip": (zipped("a.txt"), "is a zip archive; unpack it first"),
    "empty": (zipped(), "is an empty zip archive; download the file itself"),
    "npz": (zipped("a.npy"), "is a NumPy archive; save it in the expected format"),
    "npy": (saved_array(), "is a NumPy array; save it in the expected format"),
    "safetensors": (safetensors.torch.save({"a": torch.zeros(2)}), "is a safetensors file; name it .safetensors"),
    "xz": (lzma.compress(b"x"), "is an xz archive; unpack it first"),
    "pdf": (b"%PDF-1.7", "is a PDF document; download the file itself"),
}


@pytest.mark.parametrize("name", STRANGERS)
def test_a_file_of_another_kind_is_named_as_what_it_is(tmp_path, name):
    content, message = STRANGERS[name]

    def refused(read, file, error=DataError):
        (tmp_path / file).write_bytes(content)
        with pytest.raises(error) as raised:
            read(tmp_path / file)
        assert str(raised.value) == f"{tmp_path / file}: {message}"

    assert foreign(content) == message
    refused(lambda path: read_published(str(path)), "a.bin")
    refused(open_image, "a.jpg")
    refused(lambda path: load(path, installed()), "a.toml", RecipeError)
    refused(lambda path: read_list(path, "questions", "VQA questions"), "a.json")
    refused(lambda path: read_sources([path]), "a.jsonl")
    if name != "safetensors":
        refused(lambda path: read_published(str(path)), "a.safetensors")
        refused(read_tensors, "b.safetensors", RunError)


def test_files_of_the_expected_kind_are_not_foreign(tmp_path):
    torch.save({"a": torch.zeros(2)}, tmp_path / "a.bin")
    torch.save({"a": torch.zeros(2)}, tmp_path / "old.bin", _use_new_zipfile_serialization=False)
    for name in ("a.bin", "old.bin"):
        assert {*read_published(str(tmp_path / name))} == {"a"}
    (tmp_path / "a.safetensors").write_bytes((tmp_path / "a.bin").read_bytes())
    with pytest.raises(DataError, match=r"a\.safetensors: is a torch file; name it \.bin or \.pt"):
        read_published(str(tmp_path / "a.safetensors"))
    for plain in (b"", b"{}", b"name = 1", b"a,b\n", b"<annotation>", b"\x80\x02}."):
        assert foreign(plain) == ""


def test_a_torch_file_with_missing_parts(tmp_path):
    (tmp_path / "a.bin").write_bytes(zipped("a/data.pkl"))
    with pytest.raises(DataError) as error:
        read_published(str(tmp_path / "a.bin"))
    assert str(error.value) == (
        f"{tmp_path}/a.bin: damaged, or not a weights file: parts of the torch file are missing; download the file "
        "again, as safetensors if available"
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[" * 100_000, "nested too deeply"),
        (b"9" * 5000, "a number has too many digits"),
        (b'{"a": }', "not valid JSON: Expecting value (column 7)"),
        (b'\n{"a": }', "not valid JSON: Expecting value (line 2, column 7)"),
        (b'"\xff"', "not UTF-8"),
        (LFS, STRANGERS["lfs"][1]),
    ],
)
def test_json_that_cannot_be_read(tmp_path, content, problem):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(RunError) as error:
        read_json(tmp_path / "a.json")
    assert str(error.value) == f"{tmp_path}/a.json: {'' if content == LFS else 'damaged: '}{problem}"


@pytest.fixture
def ended_process() -> int:
    """The number of a process that has ended."""
    if not (child := os.fork()):
        os._exit(0)
    os.waitpid(child, 0)
    return child


def partial_of(pid: int, path: Path, end: str = "partial") -> Path:
    return path.with_name(f".{path.name}.{files._machine_id()}.{pid}.{end}")


def test_temporary_files_of_a_killed_writer_are_deleted_by_the_next_one(tmp_path, ended_process):
    """Those of a process that runs, of another machine, and of another file stay."""
    path = tmp_path / "a.txt"
    stay = [
        partial_of(os.getppid(), path),
        tmp_path / f".a.txt.{ended_process}.partial",
        partial_of(ended_process, tmp_path / "b.txt"),
    ]
    for file in (*stay, partial_of(ended_process, path), partial_of(os.getpid(), path, "folder.partial")):
        file.write_text("half")
    partial_of(ended_process, path, "folder.partial").mkdir()
    write_text(path, "complete")
    assert sorted(tmp_path.iterdir()) == sorted([*stay, path]) and path.read_text() == "complete"


def test_a_folder_whose_name_a_library_cannot_write(tmp_path):
    path = tmp_path / os.fsdecode(b"\xff")
    with pytest.raises(RunError) as error:
        write_folder(path, lambda partial: str(partial / "a").encode())
    assert str(error.value) == rf"{tmp_path}/\udcff: cannot be written: the name is not UTF-8; choose another name"
    with pytest.raises(UnicodeEncodeError):  # of a content
        write_folder(path, lambda partial: "\ud800".encode())
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [OSError(5, "Input/output error"), KeyboardInterrupt()])
def test_a_folder_that_was_being_replaced_gets_its_name_back(tmp_path, monkeypatch, error):
    path = tmp_path / "folder"
    write_folder(path, lambda partial: (partial / "a").write_text("before"))

    def fail(partial, target):
        assert not target.exists()
        raise error

    monkeypatch.setattr("mmgen.files.take_name", fail)
    with pytest.raises((RunError, KeyboardInterrupt)):
        write_folder(path, lambda partial: (partial / "a").write_text("after"))
    assert [file.name for file in tmp_path.iterdir()] == ["folder"] and (path / "a").read_text() == "before"


def test_after_a_kill_a_replaced_folder_gets_its_name_back_unless_the_new_one_has_it(tmp_path, ended_process):
    path = tmp_path / "folder"
    spent, partial = partial_of(ended_process, path, "spent.partial"), partial_of(ended_process, path)
    for folder in (spent, partial):
        folder.mkdir()
        (folder / "a").write_text("before" if folder is spent else "after")
    clear_killed(path)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"] and (path / "a").read_text() == "before"
    spent.mkdir()
    (spent / "a").write_text("older")
    clear_killed(path)
    assert [file.name for file in tmp_path.iterdir()] == ["folder"] and (path / "a").read_text() == "before"


@pytest.mark.slow
def test_half_a_character_is_written_as_json_spells_it(tmp_path):
    write_json(tmp_path / "a.json", {"text": "\ud800"})
    assert read_json(tmp_path / "a.json") == {"text": "\ud800"}
