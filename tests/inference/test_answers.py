"""The file of answers: complete lines after a full disk, and one command at a time."""

import json
import resource

import pytest

from mmgen.errors import RunError

pytestmark = pytest.mark.slow


def test_a_full_disk_keeps_whole_lines(tmp_path):
    from mmgen.inference.answers import answers_file

    path, limits = tmp_path / "out.jsonl", resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, limits[1]))
    try:
        with pytest.raises(RunError) as error, answers_file(path) as add:
            add({"id": "\ud800", "texts": ["x" * 30]})
            add({"id": "b", "texts": ["x" * 80]})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    partial = tmp_path / ".out.jsonl.partial"
    assert str(error.value) == f"{path}: cannot be written: File too large"
    assert error.value.__notes__ == [f"partial answers (1) are in {partial}; re-running the command starts over"]
    assert [json.loads(line)["id"] for line in partial.read_text().splitlines()] == ["\ud800"] and not path.exists()


def test_two_commands_do_not_write_one_file(tmp_path):
    from mmgen.inference.answers import answers_file

    with answers_file(tmp_path / "a.jsonl") as add:
        add({"id": "1"})
        with pytest.raises(RunError) as error, answers_file(tmp_path / "a.jsonl"):
            pass
        add({"id": "2"})
    assert str(error.value) == (
        f"{tmp_path}/a.jsonl: another command is writing this file; wait for it, or choose another file"
    )
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2
