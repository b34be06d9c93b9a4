"""`mmgen ray` on the command line: the suite of commands, and what it says without Ray."""

import importlib.util

import pytest
from kit.toys import mmgen_here as mmgen
from mmgen_ray import Ray

from mmgen.testing import CommandSuite


class TestRay(CommandSuite):
    def config(self):
        return Ray()


@pytest.mark.parametrize(
    "arguments",
    [
        ("features", "extract", "pictures", "r.h5", "--type", "roi"),
        ("generate", "run", "pictures", "--out", "a.jsonl"),
        ("predict", "run", "pictures", "--out", "a.jsonl"),
        ("run", "toy.toml", "--seeds", "3"),
    ],
)
def test_without_ray_one_line_says_what_to_install(tmp_path, monkeypatch, arguments):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "ray" else find(name))
    done = mmgen(tmp_path, "ray", *arguments)
    assert done.returncode == 1 and done.stderr == (
        'error: mmgen ray needs ray; in a checkout of mmgen, run: pip install ".[ray]"\n'
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("generate", "run", "pictures"), "requires --out FILE"),
        (
            ("generate", "run", "--caption", "a dog", "--out", "a.jsonl"),
            "no input; give a picture, a folder, or a JSONL file",
        ),
        (
            ("features", "extract", "pictures", "r.h5", "--type", "bottom_up_tsv"),
            "--type bottom_up_tsv: reads published files; use `mmgen features import`",
        ),
        (
            ("features", "extract", "nowhere", "r.h5", "--type", "roi"),
            "nowhere: no such folder; give a folder of images",
        ),
    ],
)
def test_mistakes_are_reported_before_ray_starts(tmp_path, monkeypatch, arguments, message):
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object() if name == "ray" else find(name))
    done = mmgen(tmp_path, "ray", *arguments)
    assert done.returncode == 1 and done.stderr == f"error: {message}\n"
