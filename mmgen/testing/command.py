"""The conformance suite of commands. The contract is in `mmgen.configs.CommandConfig`."""

from __future__ import annotations

import sys
from unittest import mock

from click.testing import CliRunner

from ..commands import build_command
from ..configs import CommandConfig
from .suite import Suite, explained


class CommandSuite(Suite[CommandConfig]):
    """Checks of a command: the click command, its help, and that help imports nothing heavy."""

    def test_help_describes_the_command(self) -> None:
        config = self.buildable()
        message = f"building the command '{config.type}' fails, or imports torch; import it inside the function"
        with explained(message), mock.patch.dict(sys.modules, torch=None):
            command = build_command(config)
        result = CliRunner().invoke(command, ["--help"])
        assert result.exit_code == 0, f"`mmgen {config.type} --help` ends with {result.exit_code}: {result.output}"
        assert command.help, f"`mmgen {config.type} --help` does not describe the command; give it a docstring"
