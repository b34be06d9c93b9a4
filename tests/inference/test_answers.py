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
        with pytest.raises(RunError) as error, answers_file(path) as file:
            file.add({"id": "\ud800", "texts": ["x" * 30]})
            file.add({"id": "b", "texts": ["x" * 80]})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    partial = tmp_path / ".out.jsonl.partial"
    assert str(error.value) == f"{path}: cannot be written: File too large"
    assert error.value.__notes__ == [f"partial answers (1) are in {partial}; re-running the command starts over"]
    assert [json.loads(line)["id"] for line in partial.read_text().splitlines()] == ["\ud800"] and not path.exists()


def test_two_commands_do_not_write_one_file(tmp_path):
    from mmgen.inference.answers import answers_file

    with answers_file(tmp_path / "a.jsonl") as file:
        file.add({"id": "1"})
        with pytest.raises(RunError) as error, answers_file(tmp_path / "a.jsonl"):
            pass
        file.add({"id": "2"})
    assert str(error.value) == (
        f"{tmp_path}/a.jsonl: another command is writing this file; wait for it, or choose another file"
    )
    assert len((tmp_path / "a.jsonl").read_text().splitlines()) == 2


def test_a_stopped_file_is_continued_after_its_last_whole_line(tmp_path):
    from mmgen.inference.answers import answers_file

    path = tmp_path / "a.jsonl"
    (tmp_path / ".a.jsonl.partial").write_text('{"id": "1"}\n{"id": "2"}\n{"id": "3')
    with pytest.raises(KeyboardInterrupt) as stopped, answers_file(path, resume=True) as file:
        assert [line["id"] for line in file.earlier] == ["1", "2"]
        file.add({"id": "3"})
        raise KeyboardInterrupt
    assert stopped.value.__notes__[0].endswith(
        "partial answers (3) are in " + str(file.partial) + "; re-running the command continues"
    )
    with answers_file(path, resume=True) as file:
        assert len(file.earlier) == 3
    assert [json.loads(line)["id"] for line in path.read_text().splitlines()] == ["1", "2", "3"]
    with answers_file(path) as file:
        assert file.earlier == []
