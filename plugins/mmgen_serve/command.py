"""The command `mmgen serve`: a model's application in uvicorn until a signal."""

from __future__ import annotations

import importlib.util
import ipaddress
import logging
import os
import signal
import socket
import warnings
from typing import TYPE_CHECKING

import click

from mmgen.commands import model_argument
from mmgen.errors import MmgenError, RunError, install_extra
from mmgen.progress import tell

if TYPE_CHECKING:
    from mmgen.inference.predictor import Predictor

TOKEN = "MMGEN_SERVE_TOKEN"
MOST_READERS = 4
MOST_REQUESTS = 256  # at a time; further ones are refused with 503
SMALL = 5_000_000  # weights, as for training. With 0.5 M, an answer takes 33 ms on one thread, 49 ms on two


def _value(name: str, kind: click.ParamType, default: object, text: str):
    return click.option(name, type=kind, default=default, show_default=True, help=text)


@click.command()
@model_argument
@click.option("--step", help="Of a run: the step to serve; by default default_step, or the best one.")
@click.option("--device", help="cpu, cuda or cuda:N; by default a GPU if there is one.")
@_value("--dtype", click.Choice(["float32", "bfloat16", "float16"]), "float32", "Of weights and computations.")
@_value("--host", click.STRING, "127.0.0.1", "The address to listen on.")
@_value("--port", click.IntRange(0, 65535), 8000, "0: any free port.")
@click.option("--threads", type=click.IntRange(1), help="CPU threads of the model; by default one for a small model.")
@_value("--batch", click.IntRange(1, 1024), 32, "The most requests in a batch.")
@click.option("--token-file", type=click.File(), help=f"Has the token that clients must send; {TOKEN} may hold it too.")
@_value("--grace", click.IntRange(1, 3600), 30, "Seconds for accepted requests, after SIGTERM or Ctrl-C.")
def serve(where, step, device, dtype, host, port, threads, batch, token_file, grace):
    """Serve the model WHERE (a run, an export or hf:user/name) over HTTP, with a page to try it.

    Requests that come together are answered together. The service listens on this machine only, unless --host says
    otherwise; put a proxy with TLS in front of it then. It ends on SIGTERM or Ctrl-C.
    """
    for name in ("fastapi", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise MmgenError(f"mmgen serve needs {name}; {install_extra('serve')}")
    token = (token_file.read() if token_file else os.environ.get(TOKEN, "")).strip()
    if token_file and not token:
        raise MmgenError(f"--token-file {token_file.name}: is empty; write the token into it")
    listening = listen(host, port)
    import torch

    from mmgen.inference.load import load

    tell(f"loading {where}", err=True)
    predictor = load(where, step=step, device=device, dtype=dtype)
    small = sum(parameter.numel() for parameter in predictor.model.parameters()) <= SMALL
    if threads or (small and predictor.model.device.type == "cpu"):
        torch.set_num_threads(threads or 1)
    predictor.warm()
    run(predictor, listening, token, batch, grace)


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address. Raises RunError."""
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise RunError(
            f"--host {host} --port {port}: {str(error.strerror).partition(' (')[0]}; choose another address or port"
        ) from None
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # inherited; without it, answers are 40 ms late
    return listening


def run(predictor: Predictor, listening: socket.socket, token: str, batch: int, grace: int) -> None:
    """Serve a predictor until SIGTERM or Ctrl-C; then answer what was accepted, within `grace` seconds."""
    import torch
    import uvicorn

    from .app import Service, create_app

    host, port = listening.getsockname()[:2]
    loopback, on_cpu = ipaddress.ip_address(host).is_loopback, predictor.model.device.type == "cpu"
    shares = torch.get_num_threads() == 1 and on_cpu and predictor.features.thread_safe  # the cores, to read pictures
    service = Service(predictor, batch, min(os.cpu_count() or 1, MOST_READERS) if shares else 1)
    name = f"{predictor.recipe.name}/{predictor.step}"
    tell(f"serving {name} on http://{f'[{host}]' if ':' in host else host}:{port} (the page: open this address)")
    if not loopback:
        guarded = "with the token" if token else "without a token: set --token-file"
        tell(f"listening beyond this machine, {guarded}; put a proxy with TLS in front", err=True)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again at its end
        signal.signal(number, lambda *_: None)
    logging.getLogger("uvicorn.error").setLevel(logging.CRITICAL)  # broken requests of clients are no news,
    warnings.filterwarnings("ignore", module=r"PIL\.")  # nor are their broken pictures
    config = uvicorn.Config(
        create_app(service, name, token, loopback),
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_REQUESTS,
        timeout_graceful_shutdown=grace,
    )
    uvicorn.Server(config).run(sockets=[listening])
