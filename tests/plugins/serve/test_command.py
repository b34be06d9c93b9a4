"""`mmgen serve` on the command line: what is missing, and the token."""

import importlib.util

import pytest
from kit.toys import mmgen_here as mmgen
from mmgen_serve.command import read_token

from mmgen.errors import MmgenError


def test_a_package_that_is_missing_is_named(monkeypatch, tmp_path):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "uvicorn" else find(name))
    done = mmgen(tmp_path, "serve", "run")
    assert done.returncode == 1 and done.stderr == (
        'error: mmgen serve needs uvicorn; in a checkout of mmgen, run: pip install ".[serve]"\n'
    )


def test_a_run_that_is_not_there(tmp_path):
    done = mmgen(tmp_path, "serve", "nowhere", "--port", "0")
    assert done.returncode == 1 and done.stderr.splitlines()[-1].startswith("error: nowhere")


def test_a_token_comes_from_a_file_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("MMGEN_SERVE_TOKEN", raising=False)
    assert read_token(None) == ""
    monkeypatch.setenv("MMGEN_SERVE_TOKEN", "from-environment")
    assert read_token(None) == "from-environment"
    (tmp_path / "token").write_text("from-file\n")
    assert read_token(tmp_path / "token") == "from-file"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"", "is empty; write the token into it"),
        (b"\xff", "cannot be read: not UTF-8"),
        (b"two words", "the token must be printable ASCII without spaces"),
    ],
)
def test_a_token_that_cannot_be_used(tmp_path, content, message):
    path = tmp_path / "token"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(MmgenError) as error:
        read_token(path)
    assert str(error.value) == f"--token-file {path}: {message}"
