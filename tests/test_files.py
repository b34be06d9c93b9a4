"""Files: locks with one holder, complete files and folders or none, image keys, JSON that cannot be read."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mmgen.errors import RunError
from mmgen.files import (
    image_key,
    locked,
    read_json,
    refuse_overwriting,
    write_atomically,
    write_folder,
    write_json,
    write_text,
)

LEAVES_A_CHILD = """
import os, signal, sys, time
from pathlib import Path
from mmgen.files import locked

with locked(Path(sys.argv[1]), lambda: None):
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.write(writing, b"x")  # it has let go of the lock: a fork does so before it goes on
        time.sleep(600)
    os.read(reading, 1)
    Path(sys.argv[2]).write_text(str(child))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def refuse() -> None:
    raise RunError("busy")


@pytest.mark.slow
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


@pytest.mark.parametrize("fails", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_what_cannot_be_written_changes_nothing(tmp_path, fails):
    write_text(tmp_path / "a.json", "before")
    write_folder(tmp_path / "b", lambda partial: (partial / "x").write_text("before"))

    def fail(partial: Path) -> None:
        if partial.is_dir():
            (partial / "x").write_text("after")
        raise fails

    for path, write in {tmp_path / "a.json": write_atomically, tmp_path / "b": write_folder}.items():
        with pytest.raises((RunError, KeyboardInterrupt)) as caught:
            write(path, fail)
        if isinstance(fails, OSError):
            assert str(caught.value) == (
                f"{path}: cannot be written: No space left on device; existing files are unchanged; re-run the same "
                "command to continue"
            )
    assert {file.name for file in tmp_path.iterdir()} == {"a.json", "b"}
    assert (tmp_path / "a.json").read_text() == (tmp_path / "b/x").read_text() == "before"


def test_a_device_or_a_folder_is_not_replaced_by_a_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "file").touch()
    for path, write in ((tmp_path / "pipe", write_json), (tmp_path, write_json), (tmp_path / "file", write_folder)):
        with pytest.raises(RunError, match="already exists and would be replaced; choose another name"):
            write(path, {})


def test_an_input_is_not_overwritten(tmp_path):
    (tmp_path / "in.jsonl").touch()
    (tmp_path / "link").symlink_to("in.jsonl")
    refuse_overwriting("--out", tmp_path / "out.jsonl", [tmp_path / "in.jsonl"])
    with pytest.raises(RunError, match=r"--out .*link: is also an input file and would be overwritten; choose another"):
        refuse_overwriting("--out", tmp_path / "link", [None, tmp_path / "in.jsonl"])


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("COCO_train2014_000000314392.jpg", "314392"),
        ("a/b/000000314392", "314392"),
        ("my photo.v2.JPEG", "my photo.v2"),
        ("0042.png", "0042"),
    ],
)
def test_keys_of_images(name, key):
    assert image_key(name) == key


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"[" * 100_000, "nested too deeply, or a number has too many digits"),
        (b'\n{"a": }', "not valid JSON: Expecting value (line 2, column 7)"),
        (b'"\xff"', "not UTF-8"),
    ],
)
def test_json_that_cannot_be_read(tmp_path, content, problem):
    (tmp_path / "a.json").write_bytes(content)
    with pytest.raises(RunError) as error:
        read_json(tmp_path / "a.json")
    assert str(error.value) == f"{tmp_path}/a.json: damaged: {problem}"
