"""The journal of a store: every complete record survives a cut or a full disk."""

import subprocess
import sys
import textwrap
from types import SimpleNamespace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from kit.stores import FINGERPRINT, SLOW_WRITER, assert_same_record, fill, record

from mmgen.errors import RunError
from mmgen.features.journal import Journal
from mmgen.features.writer import StoreWriter


@pytest.mark.slow
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
