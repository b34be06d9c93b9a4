"""The command line. Heavy imports wait inside the commands, so that help and plugins answer at once."""

from __future__ import annotations

import logging
import os

import click

from ..errors import MmgenError, shown
from . import bench, files, judge, plugin, probe, reports, runs, score


class Commands(click.Group):
    """Errors that a person can cause: their text, no traceback, exit code 1."""

    def invoke(self, context: click.Context):
        try:
            return super().invoke(context)
        except MmgenError as error:
            click.echo(f"error: {error}", err=True)
            context.exit(1)
        except BrokenPipeError:
            os._exit(1)  # whoever read us has gone; nothing can be said any more
        except OSError as error:
            if error.filename is None:  # not about a file that somebody named
                raise
            click.echo(shown(f"error: {error.filename}: {error.strerror}"), err=True)
            context.exit(1)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mmgen-framework", prog_name="mmgen")
def main() -> None:
    """Pretrained encoders as generators: BERT-gen and visual question generation."""
    logging.basicConfig(format="%(message)s")
    logging.getLogger("mmgen").setLevel(logging.INFO)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")


for command in (runs.run, runs.show, runs.check, runs.plugins, runs.init, runs.generate, files.features, files.data, plugin.plugin, plugin.schema, probe.probe, reports.report, reports.compare, score.score, judge.judge, bench.bench):
    main.add_command(command)
