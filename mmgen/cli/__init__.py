"""The command line. Heavy imports wait inside the commands, so that help and plugins answer at once."""

from __future__ import annotations

import contextlib
import errno
import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from ..commands import GOES_ON, LEARNING
from ..errors import MmgenError, printable, shown
from ..progress import tell
from ..training.signals import handling
from .lookup import Lookup

NOT_WRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)  # what a disk says, of no file by name


class Commands(Lookup):
    """Errors that a person can cause, and being stopped: a line with what is noted on them, no traceback, exit code
    1."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        with contextlib.suppress(OSError, RuntimeError, AttributeError):  # stderr is not a file of the system
            faulthandler.enable()  # a crash in a plugin or a library prints where it was
        with _errors_in_a_line(context):  # `--help` is written here
            return super().parse_args(context, args)

    def invoke(self, context: click.Context) -> Any:
        with _errors_in_a_line(context):
            return super().invoke(context)


@contextlib.contextmanager
def _errors_in_a_line(context: click.Context) -> Iterator[None]:
    try:
        with _stoppable():
            yield
    except KeyboardInterrupt as stop:
        how = context.meta.get(GOES_ON)
        _say(f"stopped; {how}" if how else "stopped", stop.__cause__ or stop)
        context.exit(1)
    except MmgenError as error:
        _say(str(error), error)
        context.exit(1)
    except click.UsageError as error:
        told = error.format_message()
        ours = printable(told) + (hint(error) if isinstance(error, click.NoSuchOption) else "")
        if ours == told:
            raise
        raise click.UsageError(ours, error.ctx) from None
    except BrokenPipeError:
        context.exit(1)  # whoever read us has gone
    except OSError as error:
        if error.filename is None and error.errno not in NOT_WRITTEN:
            raise
        what = error.filename or "standard output, or a file that was being written"
        _say(shown(f"{what}: {error.strerror}"), error)
        context.exit(1)
    finally:
        _settle_output()


def _settle_output() -> None:
    """What standard output has not taken yet leads nowhere where it cannot be written to: Python would fail at its end,
    also after a run that has gone on without it."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with contextlib.suppress(OSError), Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), sys.stdout.fileno())


def hint(error: click.NoSuchOption) -> str:
    """How a key of a recipe is set, where somebody took it for an option; empty elsewhere."""
    from ..recipe.tables import TABLES, Recipe

    options = error.ctx.command.params if error.ctx else []
    if not any(option.name == "sets" and option.metavar == "A.B=VALUE" for option in options):
        return ""
    key = error.option_name.lstrip("-").replace("-", "_")
    if key == "profile":  # a key of the recipe, which --set refuses
        return " `mmgen check` checks every profile; `mmgen run` and `mmgen show` choose one."
    homes = [f"{table}.{key}" for table, config in TABLES.items() if key in config.model_fields]
    homes += [key] if key in Recipe.model_fields else []
    return f" It is a key of the recipe: --set {homes[0]}=VALUE." if homes else " A recipe's keys: --set A.B=VALUE."


def _say(what: str, error: BaseException) -> None:
    notes = map(shown, getattr(error, "__notes__", ()))
    tell(f"error: {'; '.join([what, *notes])}", err=True)


class Printable(logging.Formatter):
    """A message as it may be shown."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


class Stopped(KeyboardInterrupt):
    """By a signal. (After a plain KeyboardInterrupt inside some `exec`, Python exits as if nobody had caught
    it.)"""


@contextlib.contextmanager
def _stoppable() -> Iterator[None]:
    """A signal that asks to stop (see `training.signals`) ends what is inside, as Ctrl-C does."""
    asked = threading.Event()

    def stop() -> None:
        asked.set()
        raise Stopped

    try:
        with handling(stop):
            yield
    except Exception as error:
        if not asked.is_set():
            raise
        raise Stopped from error  # libraries make errors of their own of what comes up while they are imported


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmgen-framework", prog_name="mmgen")
def main() -> None:
    """Pretrained encoders as generators: BERT-gen and visual question generation."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # letters that its encoding has not are spelt out
    handler = logging.StreamHandler()
    handler.setFormatter(Printable())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("mmgen").setLevel(logging.INFO)
    logging.getLogger(LEARNING).setLevel(logging.WARNING)  # what concerns only those who learn
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch starts; see `mmgen.training.threads`
