"""The command `mmgen serve`: its options, and the token that clients must give."""

from __future__ import annotations

import os

import click

from mmgen.commands import model_argument
from mmgen.errors import MmgenError, install_extra
from mmgen.progress import tell

TOKEN = "MMGEN_SERVE_TOKEN"


def _number(name: str, kind: click.ParamType, default: float, text: str):
    return click.option(name, type=kind, default=default, show_default=True, help=text)


@click.command()
@model_argument
@click.option("--step", help="Of a run: the step to serve; by default default_step, or the best one.")
@click.option("--device", help="cpu, cuda or cuda:N; by default a GPU if there is one.")
@click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    show_default=True,
    help="Number format of weights and computations.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@_number("--port", click.IntRange(0, 65535), 8000, "0: any free port.")
@click.option("--threads", type=click.IntRange(1), help="CPU threads of the model; by default one for a small model.")
@_number("--window", click.FloatRange(0, 1000), 5.0, "Milliseconds that a batch waits for further requests.")
@_number("--batch", click.IntRange(1, 1024), 32, "The most requests in a batch.")
@click.option(
    "--token-file",
    type=click.File(encoding="utf-8"),
    help=f"Clients must send the token in this file. The environment variable {TOKEN} may hold it too.",
)
@_number("--grace", click.IntRange(1, 3600), 30, "Seconds for accepted requests, after SIGTERM or Ctrl-C.")
def serve(where, step, device, dtype, host, port, threads, window, batch, token_file, grace):
    """Serve the model WHERE (a run, an export or hf:user/name) over HTTP, with a page to try it.

    Requests that come together are answered together. The service listens on this machine only, unless --host says
    otherwise; put a proxy with TLS in front of it then. It ends on SIGTERM or Ctrl-C.
    """
    try:
        from . import server
    except ImportError as error:
        raise MmgenError(f"mmgen serve needs {error.name}; {install_extra('serve')}") from None
    token = (token_file.read() if token_file else os.environ.get(TOKEN, "")).strip()
    if token_file and not token:
        raise MmgenError(f"--token-file {token_file.name}: is empty; write the token into it")
    listening = server.listen(host, port)
    tell(f"loading {where}", err=True)
    predictor = server.load_model(where, step, device, dtype, threads)
    server.serve(predictor, listening, token, window / 1000, batch, grace)
