"""The entry of the command line: `main`, errors as one line, exit codes, signals, a lost output. Starts quickly."""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import logging
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from .. import __version__
from ..commands import GOES_ON, LEARNING
from ..errors import MmgenError, RecipeError, blame, printable, shown
from ..progress import tell
from ..settings import Config
from ..training.signals import stop_signals_as_ctrl_c
from .lookup import Lookup

DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # errors of a disk that name no file


class Commands(Lookup):
    """The group of all commands. A user's mistake or a stop prints one line with its notes, not a traceback; the exit
    code is 1."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        with contextlib.suppress(OSError, RuntimeError, AttributeError):  # stderr has no file descriptor
            faulthandler.enable()  # a crash in a plugin or a library prints its place
        with _errors_in_a_line(context):  # `--help` prints here
            return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        with _errors_in_a_line(context):
            return super().invoke(context)


@contextlib.contextmanager
def _errors_in_a_line(context: click.Context) -> Iterator[None]:
    try:
        with stop_signals_as_ctrl_c():
            yield
    except KeyboardInterrupt as stop:
        how = context.meta.get(GOES_ON)
        _print_error(f"stopped; {how}" if how else "stopped", stop.__cause__ or stop)
        context.exit(1)
    except click.UsageError as error:
        message = error.format_message()
        shown_message = printable(message) + (hint(error) if isinstance(error, click.NoSuchOption) else "")
        if shown_message == message:
            raise
        raise click.UsageError(shown_message, error.ctx) from None
    except (click.ClickException, click.exceptions.Exit, click.Abort):
        raise
    except BrokenPipeError:
        context.exit(1)  # the reader of standard output has closed it
    except Exception as error:
        if not (line := _in_a_line(error)):
            raise
        _print_error(line, error)
        context.exit(1)
    finally:
        _flush_output()


def _in_a_line(error: Exception) -> str:
    """An error that a person, their machine or a plugin has caused, in a line; "" for any other."""
    if isinstance(error, MmgenError):
        return str(error)
    if isinstance(error, ImportError) and "shared object" in str(error):
        advice = "check the limit of memory (ulimit -v) and the installation"
        return f"a compiled library cannot be loaded: {shown(str(error))}; {advice}"
    if isinstance(error, OSError) and (error.filename is not None or error.errno in DISK_ERRORS):
        return shown(f"{error.filename or 'standard output or an output file'}: {error.strerror}")
    return shown(blame(error))


def _flush_output() -> None:
    """Flush standard output. Where that fails, discard the rest: otherwise Python fails at exit, even after a run that
    went on without standard output."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError), Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())


def hint(error: click.NoSuchOption) -> str:
    """How to set a recipe key that was written as an option; "" for any other unknown option."""
    from ..decoding import Decoding
    from ..recipe.tables import TABLES, Recipe

    options = error.ctx.command.params if error.ctx else []
    if not any(option.name == "sets" and option.metavar == "A.B=VALUE" for option in options):
        return ""
    key = error.option_name.lstrip("-").replace("-", "_")
    if key == "profile":  # a key of the recipe, which --set refuses
        return " `mmgen check` checks every profile; `mmgen run` and `mmgen show` have --profile."
    tables: dict[str, type[Config]] = {**TABLES, "decoding": Decoding}
    homes = [f"{table}.{key}" for table, config in tables.items() if key in config.model_fields]
    homes += [key] if key in Recipe.model_fields else []
    if homes:
        return f" '{key}' is a recipe key: --set {homes[0]}=VALUE."
    if any("--input" in option.opts for option in options):
        return f" Give an input of the model with --input {key}=VALUE; set recipe keys with --set A.B=VALUE."
    return " Set recipe keys with --set A.B=VALUE."


def _print_error(what: str, error: BaseException) -> None:
    notes = map(shown, getattr(error, "__notes__", ()))
    separator = "\n" if isinstance(error, RecipeError) else "; "  # each mistake in a recipe has its own line
    tell(f"error: {separator.join([what, *notes])}", err=True)


class Printable(logging.Formatter):
    """Formats log messages without characters that a terminal must not receive."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="mmgen")
def main() -> None:
    """Train pretrained encoders to generate text: BERT-gen and visual question generation."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # characters outside its encoding are escaped
    handler = logging.StreamHandler()
    handler.setFormatter(Printable())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("mmgen").setLevel(logging.INFO)
    logging.getLogger(LEARNING).setLevel(logging.WARNING)  # these notes matter only to commands that train
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch starts; see `mmgen.training.threads`
