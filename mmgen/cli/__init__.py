"""The command line. Heavy imports wait inside the commands, so that help and plugins answer at once."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator

import click

from ..commands import GOES_ON
from ..discovery.watch import trace_crashes
from ..errors import MmgenError, printable, shown
from ..progress import tell
from ..training.signals import handling
from .lookup import Lookup


class Commands(Lookup):
    """Errors that a person can cause, and being stopped: a line with what is noted on them, no traceback, exit code
    1."""

    def invoke(self, context: click.Context):
        try:
            with _stoppable():
                return super().invoke(context)
        except KeyboardInterrupt as stop:
            how = context.meta.get(GOES_ON)
            _say(f"stopped; {how}" if how else "stopped", stop.__cause__ or stop)
            context.exit(1)
        except MmgenError as error:
            _say(str(error), error)
            context.exit(1)
        except BrokenPipeError:
            os._exit(1)  # whoever read us has gone; nothing can be said any more
        except OSError as error:
            if error.filename is None:  # not about a file that somebody named
                raise
            _say(shown(f"{error.filename}: {error.strerror}"), error)
            context.exit(1)


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
    trace_crashes()
    handler = logging.StreamHandler()
    handler.setFormatter(Printable())
    logging.basicConfig(handlers=[handler])
    logging.getLogger("mmgen").setLevel(logging.INFO)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("OMP_WAIT_POLICY", "passive")  # read when torch starts; see `mmgen.training.threads`
