"""The version of the plugin contract that a plugin requires."""

import pytest

from mmgen import API_VERSION
from mmgen.discovery.version import declared_version, version_problem


@pytest.mark.parametrize(
    ("requested", "reason"),
    [
        (API_VERSION, ""),
        (API_VERSION - 1, f"requires version {API_VERSION - 1} of the plugin contract, but this mmgen has version "),
        (API_VERSION + 1, "update mmgen (git pull in its checkout, then pip install .)"),
        ("3", "MMGEN_API is '3', but must be a whole number"),
        (True, "MMGEN_API is True, but must be a whole number"),
        (0, "MMGEN_API is 0, but must be a whole number"),
    ],
)
def test_another_version_is_refused_with_what_to_do(requested, reason):
    assert reason in version_problem(requested) and bool(version_problem(requested)) == bool(reason)


@pytest.mark.parametrize(
    ("source", "version"),
    [
        ("MMGEN_API = 2\nimport nothing_like_it\n", 2),
        ("MMGEN_API: int = 1\n1 / 0\n", 1),
        ("import nothing_like_it\n", API_VERSION),
        ("MMGEN_API = 1 +\n", API_VERSION),  # cannot be parsed
    ],
)
def test_the_version_is_read_from_a_source_that_cannot_be_imported(tmp_path, monkeypatch, source, version):
    (tmp_path / "mmgen_unimportable.py").write_text(source)
    monkeypatch.syspath_prepend(tmp_path)
    assert declared_version("mmgen_unimportable") == version


def test_a_module_without_a_source():
    assert declared_version("mmgen_nowhere") == API_VERSION
