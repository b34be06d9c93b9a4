"""The package of a part: its entry point, its registered parts, its imports."""

import importlib
import sys

import pytest

import mmgen.testing
from mmgen.registry import installed
from mmgen.testing import failures, registration

PACKAGE = """
\"\"\"A plugin.\"\"\"
from typing import Literal
import mmgen
{top}

class Sum(mmgen.MetricConfig):
    \"\"\"A metric.\"\"\"
    type: Literal["{name}"] = "{name}"
    def build(self): ...

@mmgen.hookimpl
def {hook}(): return [{gives}]
"""
COMPLETE = {"top": "", "name": "brk", "hook": "register_metrics", "gives": "Sum", "entry": "[mmgen]\nbrk = mmgen_brk\n"}


@pytest.fixture(autouse=True)
def read_again():
    installed.cache_clear()
    yield
    installed.cache_clear()


@pytest.mark.parametrize(
    "change, test, words",
    [
        ({}, "test_registered", ""),
        ({}, "test_importing_imports_no_torch", ""),
        ({"top": "import torch"}, "test_importing_imports_no_torch", "importing mmgen_brk imports torch, which slows"),
        (
            {"entry": ""},
            "test_registered",
            "mmgen-brk has no entry point for mmgen_brk, so no recipe can name Sum; write [project.entry-points.mmgen] "
            'and brk = "mmgen_brk" into its pyproject.toml',
        ),
        (
            {"hook": "register_metric"},
            "test_registered",
            "plugin 'brk' (mmgen-brk 0.1) failed to load: unknown hook 'register_metric'; did you mean",
        ),
        (
            {"gives": ""},
            "test_registered",
            "the entry point 'brk' (mmgen_brk) does not give Sum; return it from register_metrics()",
        ),
        (
            {"name": "diversity"},
            "test_registered",
            "the metric 'diversity' is provided by mmgen",
        ),
    ],
)
def test_registration_is_checked(change, test, words, tmp_path, monkeypatch):
    """With a distribution that the test creates."""
    values = {**COMPLETE, **change}
    entry = values.pop("entry")
    (tmp_path / "mmgen_brk.py").write_text(PACKAGE.format(**values))
    (tmp_path / "torch.py").write_text("")  # in place of the real one, which takes seconds
    (folder := tmp_path / "mmgen_brk-0.1.dist-info").mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mmgen-brk\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text(entry)
    (folder / "top_level.txt").write_text("mmgen_brk\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mmgen_brk", raising=False)
    registration._distributions.cache_clear()
    registration.import_problem.cache_clear()
    config = importlib.import_module("mmgen_brk").Sum
    suite = type("Suite", (mmgen.testing.Suite,), {"config": lambda self: config()})
    message = failures(suite).get(test, "")
    assert words in message and bool(message) == bool(words)
