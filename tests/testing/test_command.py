"""The suite of commands, on commands with typical mistakes."""

from typing import Literal

import click
import pytest

import mmgen
from mmgen.testing import CommandSuite

pytestmark = pytest.mark.slow


class Silent(mmgen.CommandConfig):
    type: Literal["silent"] = "silent"

    def build(self):
        return click.Command("silent")


class Wrong(mmgen.CommandConfig):
    """Not a command."""

    type: Literal["wrong"] = "wrong"

    def build(self):
        return print


def test_the_suite_says_what_is_wrong():
    from mmgen.testing import failures

    def suite(build):
        return type("Made", (CommandSuite,), {"config": lambda self: build})

    assert failures(suite(Silent())) == {
        "test_every_field_is_described": "Silent has no docstring; its first line is shown by `mmgen plugins`",
        "test_help_describes_the_command": "`mmgen silent --help` does not describe the command; give the function "
        "a docstring",
    }
    assert failures(suite(Wrong())) == {
        name: "build() of Wrong returned <built-in function print>; it must return a click.Command"
        for name in ("test_help_describes_the_command", "test_it_builds_a_command")
    }
