"""The record of a run's environment."""

import shlex
import sys

from mmgen.storage.environment import environment


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
