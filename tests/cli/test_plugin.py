"""Commands for authors of plugins: a new package, and the schema of recipes."""

import json

import pytest
from kit import toys


def test_a_new_package_says_what_to_do_next(tmp_path):
    done = toys.mmgen_here(tmp_path, "plugin", "new", "audio", "--kind", "embedder")
    assert done.returncode == 0, done.stderr
    *files, empty, following = done.stdout.splitlines()
    assert empty == "" and following.startswith("next:  cd mmgen-audio && pip install -e . && pytest && mmgen run ")
    assert all((tmp_path / file).is_file() for file in files) and "mmgen-audio/pyproject.toml" in files


def test_a_command_of_mmgen_keeps_its_name(tmp_path):
    done = toys.mmgen_here(tmp_path, "plugin", "new", "run", "--kind", "command")
    assert (done.returncode, done.stderr) == (1, "error: 'run' is a command of mmgen; choose another name\n")


@pytest.mark.slow
def test_the_schema_is_json_or_a_page(tmp_path):
    schema = json.loads(toys.mmgen_here(tmp_path, "schema").stdout)
    assert schema["type"] == "object" and "backbone" in schema["properties"]
