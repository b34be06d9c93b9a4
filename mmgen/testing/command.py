"""The conformance suite of commands. The contract is in `mmgen.configs.CommandConfig`."""

from __future__ import annotations

import click
from click.testing import CliRunner

from ..commands import build_command
from ..configs import CommandConfig
from .registration import imports_torch
from .suite import Suite, skip


class CommandSuite(Suite[CommandConfig]):
    """Checks of a command: the click command, its help, and that help imports nothing heavy."""

    def _command(self) -> click.Command:
        return build_command(self.config())

    def test_it_builds_a_command(self) -> None:
        self._command()

    def test_help_describes_the_command(self) -> None:
        name, command = self.config().type, self._command()
        result = CliRunner().invoke(command, ["--help"], prog_name=name)
        assert result.exit_code == 0, f"`mmgen {name} --help` ends with {result.exit_code}: {result.output}"
        described = (command.help or "").strip()
        assert described, f"`mmgen {name} --help` does not describe the command; give the function a docstring"

    def test_building_it_imports_no_torch(self) -> None:
        config = type(self.config())
        package = config.__module__
        if package.rpartition(".")[2].startswith("test"):
            skip("a config that a test defines cannot be imported by another process")
        torch, error = imports_torch(package, f"module.{config.__name__}().build()")
        assert not error, f"building the command '{config.__name__}' fails: {error}"
        message = f"building the command '{config.__name__}' imports torch; import it inside the command's function"
        assert not torch, message
