"""What all modules of commands share."""

from typing import Literal

import click
import pytest
from click.testing import CliRunner

import mmgen
from mmgen.commands import GOES_ON, build_command, goes_on, settings_option, together
from mmgen.errors import PluginError


class Prints(mmgen.CommandConfig):
    """Builds a function."""

    type: Literal["prints"] = "prints"

    def build(self):
        return print


def test_a_command_must_be_one_of_click():
    with pytest.raises(PluginError) as error:
        build_command(Prints())
    assert str(error.value) == ("build() of Prints returned <built-in function print>; it must return a click.Command")


def test_options_together_are_in_the_order_of_the_help():
    both = together(click.option("--first"), settings_option("A=B", "Set something."), click.option("--last"))

    @click.command()
    @both
    def command(first, sets, last):
        click.echo(f"{first} {sets} {last}")

    assert [option.name for option in command.params] == ["first", "sets", "last"]
    done = CliRunner().invoke(command, ["--set", "a=1", "--set", "b=2", "--last", "x"])
    assert done.output == "None ('a=1', 'b=2') x\n"


def test_a_command_says_how_it_goes_on():
    @click.command()
    @goes_on("run it again")
    def command():
        click.echo(click.get_current_context().meta[GOES_ON])

    assert CliRunner().invoke(command).output == "run it again\n"
