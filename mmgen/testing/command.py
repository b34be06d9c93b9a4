"""The conformance suite of commands."""

from __future__ import annotations

import subprocess
import sys

import click
from click.testing import CliRunner

from ..configs import CommandConfig
from .suite import Suite, expect, skip


class CommandSuite(Suite[CommandConfig]):
    """Checks of a command: what it builds, its help, and that help waits for nothing heavy."""

    def config(self) -> CommandConfig:
        raise NotImplementedError(
            f"{type(self).__name__} must define config(), which returns the config of the command to test"
        )

    def _command(self) -> click.Command:
        command = self.config().build()
        expect(
            isinstance(command, click.Command),
            f"build() returned {command!r}; it must return a click.Command",
            "mmgen.configs",
        )
        return command

    def test_it_builds_a_command(self) -> None:
        self._command()

    def test_help_says_what_it_does(self) -> None:
        name = self.config().type
        done = CliRunner().invoke(self._command(), ["--help"], prog_name=name)
        expect(done.exit_code == 0, f"`mmgen {name} --help` ends with {done.exit_code}: {done.output}", "click")
        command = self._command()
        expect(
            bool((command.help or "").strip()),
            f"`mmgen {name} --help` says nothing of what the command does; give the function a docstring",
            "mmgen.commands",
        )

    def test_building_it_imports_no_torch(self) -> None:
        config = type(self.config())
        package = config.__module__
        if package.rpartition(".")[2].startswith("test"):
            skip("a config that a test defines cannot be imported by another process")
        code = (
            f"import importlib, sys; config = vars(importlib.import_module({package!r}))[{config.__name__!r}]; "
            "config().build(); sys.exit('torch' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        expect(
            done.returncode == 0,
            f"building the command '{config.__name__}' imports torch, or fails: {done.stderr.strip()[-300:]}; import "
            "heavy libraries inside the command's function",
            "mmgen.commands",
        )
