"""The record of a run's environment."""

import importlib
import shlex
import sys
from pathlib import Path

from kit import toys

from mmgen.recipe.load import load
from mmgen.registry import installed
from mmgen.storage import environment as module
from mmgen.storage.environment import environment, source_digest


def test_the_command_can_be_pasted_and_what_can_change_the_result_is_prose(monkeypatch):
    typed = ["run", "toy.toml", "--set", 'description="two words"']
    monkeypatch.setattr(sys, "argv", ["somewhere/mmgen", *typed])
    record = environment()
    assert shlex.split(record["command"]) == ["mmgen", *typed]
    prose = record["can change the result"]
    assert (
        "`" not in prose
        and all(sentence[0].isupper() for sentence in prose.rstrip(".").split(". "))
        and prose[-1] == "."
    )


PLUGIN = """
    from typing import Literal
    import mmgen
    from mmgen.testing.toy import Toy

    class Mine(Toy):
        type: Literal["mine"] = "mine"

    @mmgen.hookimpl
    def register_datasets():
        return [Mine]
"""


def test_the_digest_of_sources_changes_with_the_package_of_a_part(site, tmp_path):
    site("mmgen-mine", "mmgen_mine", PLUGIN)
    mine, toy = tmp_path / "mine.toml", tmp_path / "toy.toml"
    mine.write_text(toys.recipe(data=None) + toys.toml({"data": {"type": "mine"}}))
    toy.write_text(toys.recipe())
    recipe, plain = (load(path, installed())[0] for path in (mine, toy))
    digests = [source_digest(recipe), source_digest(plain)]
    file = Path(importlib.import_module("mmgen_mine").__file__)
    file.write_text(file.read_text() + "# another word\n")
    module._source_digest.cache_clear()  # as in another process
    assert source_digest(recipe) != digests[0] and source_digest(plain) == digests[1]
