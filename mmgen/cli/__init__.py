"""The entry of the command line: `main`, its commands and their help in groups, the option --plugin of every command,
errors as one line, exit codes, signals, a lost output. Starts quickly."""

from __future__ import annotations

import atexit
import contextlib
import gc
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..commands import GOES_ON, PATH
from ..errors import PluginError, as_mmgen_error, did_you_mean
from ..progress import tell
from ..registry import installed, load_files
from ..training.signals import stop_signals_as_ctrl_c
from .answers import fill, generate, likelihood, predict
from .models import export, info, probe, push
from .parts import plugin, plugins, problems, schema
from .recipes import check, init, run, show
from .results import compare, report
from .stores import data, features

ENVIRONMENT = {  # of libraries, which read it when they are imported
    "HF_HUB_DISABLE_PROGRESS_BARS": "1",  # they would break those of mmgen
    "HF_HUB_VERBOSITY": "error",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
    "OMP_WAIT_POLICY": "passive",  # see `mmgen.training.threads`
}


GROUPS = {  # heading in the help -> its commands
    "Start": (run, init, check, show, report),
    "Your data": (data, features),
    "Use a trained run": (generate, predict, likelihood, fill, export, push, info, probe),
    "Evaluate": (compare,),
    "Extend": (plugins, plugin, schema),
}
CORE = {str(command.name): command for commands in GROUPS.values() for command in commands}
HOOK = "register_commands"  # only plugins that have it are imported to look for a command
plugin_option = click.Option(
    ["--plugin", "plugin_files"],
    type=PATH,
    metavar="FILE",
    multiple=True,
    is_eager=True,
    expose_value=False,
    callback=lambda context, option, files: load_files(files),
    help="A Python file with parts, which is executed. May be repeated.",
)


def with_plugin_option(command: click.Command) -> click.Command:
    """The command, which now has the option --plugin, as its commands have; not one that hands on its options."""
    for below in command.commands.values() if isinstance(command, click.Group) else ():
        with_plugin_option(below)
    if not (plugin_option in command.params or command.context_settings.get("ignore_unknown_options")):
        command.params.append(plugin_option)
    return command


class Commands(click.Group):
    """The group of all commands, of the core and of plugins. A broken plugin disables no command of another. A user's
    mistake or a stop prints one line, not a traceback; the exit code is 1."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        with _errors_in_a_line(context):  # `--help` prints here
            return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        with _errors_in_a_line(context):
            return super().invoke(context)

    def list_commands(self, context: click.Context) -> list[str]:
        return sorted({*CORE, *installed(HOOK).by_name("command")})

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        """The command of this name. Raises PluginError if there is none, suggesting another one and naming broken
        plugins, or if several plugins have one."""
        if name not in (names := self.list_commands(context)):
            advice = did_you_mean(name, names) or "; `mmgen --help` lists all commands"
            broken = "".join(f"\n  {plugin}" for plugin in installed().broken)
            raise PluginError(f"no command is named '{name}'{advice}{broken}")
        command = CORE.get(name)
        try:
            if command is None:
                config: Any = installed(HOOK).get("command", name).config
                command = config.model_validate({}).build()
        except Exception:
            if not context.resilient_parsing:
                raise
            return click.Command(name)  # a shell completes a line
        return with_plugin_option(command)

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write every name with its summary, in groups."""
        registry = installed(HOOK)
        groups = {
            heading: {str(command.name): command.get_short_help_str(99) for command in commands}
            for heading, commands in GROUPS.items()
        }
        for part in registry.of_kind("command"):
            groups.setdefault(getattr(part.config, "group", ""), {})[part.name] = part.summary
        width = max(len(name) for summaries in groups.values() for name in summaries)
        for heading, summaries in groups.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), text) for name, text in summaries.items()])
        for problem in problems(registry):
            tell(f"error: {problem}", err=True)


@contextlib.contextmanager
def _errors_in_a_line(context: click.Context) -> Iterator[None]:
    try:
        with stop_signals_as_ctrl_c():
            yield
    except KeyboardInterrupt:
        _fail(context, "; ".join(["stopped", *filter(None, [context.meta.get(GOES_ON)])]))
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        context.exit(1)  # the reader of standard output has closed it
    except Exception as error:
        if not (known := as_mmgen_error(error)):
            raise
        _fail(context, str(known))
    finally:
        _flush_output()


def _fail(context: click.Context, message: str) -> None:
    tell(f"error: {message}", err=True)
    context.exit(1)


def _flush_output() -> None:
    """Flush standard output. Where that fails, discard the rest: otherwise Python fails at exit, even after a run that
    went on without standard output."""
    try:
        sys.stdout.flush()
    except OSError:
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())


class Notes(logging.Handler):
    """Prints log messages for people."""

    def emit(self, record: logging.LogRecord) -> None:
        tell(self.format(record), err=True)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mmgen")
def main() -> None:
    """Train pretrained encoders to generate text: BERT-gen and visual question generation."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # characters outside its encoding are escaped
    logging.basicConfig(handlers=[Notes()], format="%(message)s")
    logging.getLogger("mmgen").setLevel(logging.INFO)
    os.environ |= ENVIRONMENT | os.environ  # what is set already stays
    atexit.register(gc.freeze)  # leaves out the last collection of garbage, which takes a second or two after torch
