"""The server: a model, its engine and its application in uvicorn, until a signal or the death of a thread."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from types import FrameType

import torch
import uvicorn

from mmgen.errors import RunError
from mmgen.inference.load import load
from mmgen.inference.predictor import Predictor
from mmgen.progress import tell

from .app import Service, application
from .engine import Engine
from .limits import Limits
from .metrics import Metrics


class Server(uvicorn.Server):
    """uvicorn's server. A signal ends it without being raised again, so that the exit code is ours."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.force_exit = self.should_exit
        self.should_exit = True


def run(
    where: str,
    *,
    step: str | None,
    device: str | None,
    dtype: str,
    host: str,
    port: int,
    threads: int | None,
    window: float,
    batch: int,
    token: str,
    grace: float,
) -> int:
    """Serve a model until a signal; the exit code: 0, or 1 if a thread died. Raises RunError for an address that cannot
    be used."""
    listening = listen(host, port)
    if threads:
        torch.set_num_threads(threads)
    predictor = load(where, step=step, device=device, dtype=dtype)
    predictor.warm()
    address, actual_port = listening.getsockname()[:2]
    loopback = ipaddress.ip_address(address).is_loopback
    shown = f"[{address}]" if ":" in address else address
    tell(f"serving {model_id(predictor)} on http://{shown}:{actual_port} (the page: open this address)")
    if not loopback:
        guarded = "with the token" if token else "without a token: set --token-file"
        tell(f"listening beyond this machine, {guarded}; put a proxy with TLS in front", err=True)
    return serve(predictor, listening, Limits(), window, batch, token=token, grace=grace, loopback=loopback)


def model_id(predictor: Predictor) -> str:
    """The name of the model for clients: recipe/step."""
    return f"{predictor.recipe.name}/{predictor.step}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address. Raises RunError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        listening = socket.socket(family, socket.SOCK_STREAM)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        raise RunError(f"--host {host} --port {port}: {error.strerror}; choose another address or port") from None
    return listening


def serve(
    predictor: Predictor,
    listening: socket.socket,
    limits: Limits,
    window: float = 0.005,
    batch: int = 32,
    *,
    token: str = "",
    grace: float = 30.0,
    loopback: bool = True,
) -> int:
    """Serve a predictor on a socket until a signal; the exit code."""
    metrics = Metrics()
    engine = Engine(predictor, limits, window, batch, on_batch=metrics.batch)
    service = Service(predictor, engine, model_id(predictor), limits, metrics)
    server: Server
    app = application(service, token, loopback, lambda: len(server.server_state.connections))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=10,
        timeout_graceful_shutdown=max(1, round(grace)),
        ws="none",
    )
    server = Server(config)

    def crash() -> None:
        server.should_exit = True

    engine.on_crash = crash
    engine.start()
    try:
        asyncio.run(server.serve(sockets=[listening]))
    finally:
        engine.stop(grace)
        listening.close()
    if engine.error is not None:
        error = engine.error
        tell(f"error: the model's thread died: {type(error).__name__}: {str(error).partition(chr(10))[0]}", err=True)
        return 1
    return 0
