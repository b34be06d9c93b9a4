"""`mmgen ray` on the command line: the suite of commands, what it says without Ray, and messages of a fake one."""

import sys
from types import SimpleNamespace

import pytest
from kit import toys
from kit.toys import mmgen_here as mmgen
from mmgen_ray import Ray, cluster

from mmgen.errors import RunError
from mmgen.runs.child import TRAINED, Settings
from mmgen.storage.run_folder import RunFolder
from mmgen.testing import CommandSuite


class TestRay(CommandSuite):
    def config(self):
        return Ray()


@pytest.mark.parametrize(
    "arguments",
    [
        ("shards", "features", "extract", "pictures", "r.h5", "--type", "roi"),
        ("run", "toy.toml", "--seeds", "3"),
    ],
)
def test_without_ray_one_line_says_what_to_install(tmp_path, monkeypatch, arguments):
    monkeypatch.setitem(sys.modules, "ray", None)
    (tmp_path / "toy.toml").write_text(toys.RECIPE)
    done = mmgen(tmp_path, "ray", *arguments)
    assert done.returncode == 1 and done.stderr == (
        'error: mmgen ray needs ray; in a checkout of mmgen, run: pip install ".[ray]"\n'
    )


def test_shards_need_a_file_to_join_them_to(tmp_path):
    done = mmgen(tmp_path, "ray", "shards", "generate", "run", "pictures")
    assert done.returncode == 1
    assert done.stderr == "error: ray shards: name the file to join the shards to: --out FILE\n"


class Messages:
    """What a task of a step would say, without Ray."""

    def __init__(self, *messages):
        self.messages = messages

    def submit(self, function, *arguments, **options):
        assert function is cluster.train_step and options == {"num_returns": "streaming"}
        return iter(self.messages)

    cpus = 1


class RayError(Exception):
    pass


def test_messages_of_a_worker_are_those_of_a_child(tmp_path, monkeypatch):
    """A fake of Ray, whose references are what they refer to."""
    fake = SimpleNamespace(get=lambda message: message, exceptions=SimpleNamespace(RayError=RayError))
    monkeypatch.setitem(sys.modules, "ray", fake)
    messages = Messages("a line", ("on_update", "first", {}), TRAINED)
    child = cluster.RemoteChild(messages, RunFolder(tmp_path), None, Settings(), 0)
    child.train("first")
    assert [child.receive() for _ in range(3)] == [*messages.messages] and child.step == "first"
    fake.get = raises
    child.train("second")
    with pytest.raises(RunError, match="step 'second': its worker ended 4 times"):
        child.receive()


def raises(message):
    raise RayError
