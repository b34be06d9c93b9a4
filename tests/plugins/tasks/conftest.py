"""Files that the tests of tasks write."""

import json

import pytest


@pytest.fixture
def files(tmp_path):
    def write(**texts):
        """Write files of these names (a_json is a.json) and return their paths."""
        paths = []
        for name, text in texts.items():
            paths.append(tmp_path / ".".join(name.rsplit("_", 1)))
            paths[-1].write_text(text if isinstance(text, str) else json.dumps(text), encoding="utf-8")
        return paths

    return write
