"""The command `mmgen serve`: its options, and the token that clients must give."""

from __future__ import annotations

import importlib.util
import logging
import os
from pathlib import Path
from typing import Any

import click

from mmgen.commands import model_argument, quiet
from mmgen.errors import MmgenError, install_extra
from mmgen.progress import tell

NEEDED = ("starlette", "uvicorn", "python_multipart")
TOKEN = "MMGEN_SERVE_TOKEN"


@click.command()
@model_argument
@click.option(
    "--step", help="Of a run: the step to serve; by default the best one by the table's first metric, or default_step."
)
@click.option("--device", help="cpu, cuda or cuda:N; by default a GPU if there is one.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
    help="Number format of weights and computations.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0: any free port.")
@click.option(
    "--threads", type=click.IntRange(1, 1024), help="CPU threads of the model; by default one for a small model."
)
@click.option(
    "--window",
    type=click.FloatRange(0, 1000),
    default=5.0,
    show_default=True,
    help="Milliseconds that a batch waits for further requests.",
)
@click.option(
    "--batch", type=click.IntRange(1, 1024), default=32, show_default=True, help="The most requests in a batch."
)
@click.option(
    "--token-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help=f"Clients must send the token in this file. The environment variable {TOKEN} may hold it too.",
)
@click.option(
    "--grace",
    type=click.FloatRange(0, 3600),
    default=30.0,
    show_default=True,
    help="Seconds for the requests that were accepted, after SIGTERM or Ctrl-C.",
)
def serve(where: str, token_file: Path | None, window: float, **options: Any) -> None:
    """Serve the model WHERE (a run, an export or hf:user/name) over HTTP, with a page to try it.

    Requests that come together are answered together. The service listens on this machine only, unless --host says
    otherwise; put a proxy with TLS in front of it then. It ends on SIGTERM or Ctrl-C.
    """
    if missing := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        raise MmgenError(f"mmgen serve needs {', '.join(missing)}; {install_extra('serve')}")
    token = read_token(token_file)
    quiet()
    from mmgen.inference.hub import check_folder

    check_folder(where)
    from .server import Options, run

    logging.basicConfig(format="%(message)s")
    logging.getLogger("mmgen.serve").setLevel(logging.INFO)
    tell(f"loading {where}", err=True)
    code = run(where, Options(**options, window=window / 1000, token=token))
    click.get_current_context().exit(code)


def read_token(path: Path | None) -> str:
    """The token of clients, from the file or the environment; empty if there is none. Raises MmgenError."""
    if path is None:
        token = os.environ.get(TOKEN, "")
        place = TOKEN
    else:
        place = f"--token-file {path}"
        try:
            token = path.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeError) as error:
            raise MmgenError(f"{place}: cannot be read: {getattr(error, 'strerror', 'not UTF-8')}") from None
        if not token:
            raise MmgenError(f"{place}: is empty; write the token into it")
    if not token.isascii() or not token.isprintable() or " " in token:
        raise MmgenError(f"{place}: the token must be printable ASCII without spaces")
    return token
