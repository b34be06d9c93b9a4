"""A valid recipe for the tests of this folder."""

from pathlib import Path

import pytest
from kit.recipes import GOOD


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str = GOOD, name: str = "my.toml") -> Path:
        Path(name).write_text(text)
        return Path(name)

    return write
