"""Locks: one holder at a time, named, and gone with its process however that ends. Files that cannot be written."""

import os
import platform
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from mmgen.errors import RunError
from mmgen.files import locked, write_atomically

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
