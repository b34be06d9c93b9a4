"""The server: the application in uvicorn until a signal; its address, threads, readers, the model's id, a late end."""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import socket
import threading
import warnings
from dataclasses import dataclass
from types import FrameType
from typing import Any

import torch
import uvicorn

from mmgen.errors import RunError
from mmgen.inference.load import load
from mmgen.inference.predictor import Predictor
from mmgen.progress import tell

from .app import Service, application
from .limits import Limits

MOST_READERS = 4
SLACK = 5.0  # seconds for the end of threads, after the time for answers
LATE = 0.05  # seconds between two looks for connections that were being accepted at the end
SMALL = 5_000_000  # weights, as for training. With 0.5 M, an answer takes 33 ms on one thread, 49 ms on two


class Server(uvicorn.Server):
    """uvicorn's server. A signal ends it without being raised again, so that the exit code is ours. The process ends at
    most `limit` seconds after the signal, even if a thread does not: Python would wait for it without a limit."""

    def __init__(self, config: uvicorn.Config, limit: float) -> None:
        super().__init__(config)
        self.limit = limit

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        if not self.should_exit:
            timer = threading.Timer(self.limit, end_now)
            timer.daemon = True  # it does not hold up an end that comes earlier
            timer.start()
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """uvicorn closes the connections that it has, each after its answer. One that was just being accepted is closed
        here: its client could send requests until the time for answers ends, and lose the last answer."""
        closing = asyncio.create_task(self._close_late(set(self.server_state.connections)))
        try:
            await super().shutdown(sockets)
        finally:
            closing.cancel()

    async def _close_late(self, closed: set[Any]) -> None:
        while True:
            for connection in self.server_state.connections - closed:
                connection.shutdown()
                closed.add(connection)
            await asyncio.sleep(LATE)


def end_now() -> None:
    """End the process without its threads. Whoever still waits was refused when the time for answers ended."""
    tell("a thread is still running; the process ends without it", err=True)
    os._exit(0)


@dataclass(frozen=True)
class Options:
    """How a model is served. `window`, `grace`: in seconds; the rest as on the command line."""

    step: str | None = None
    device: str | None = None
    dtype: str = "float32"
    host: str = "127.0.0.1"
    port: int = 8000
    threads: int | None = None
    window: float = 0.005
    batch: int = 32
    token: str = ""
    grace: float = 30.0


def run(where: str, options: Options) -> int:
    """Serve a model until a signal; the exit code: 0, or 1 if a thread died. Raises RunError for an address that cannot
    be used."""
    listening = listen(options.host, options.port)
    predictor = load(where, step=options.step, device=options.device, dtype=options.dtype)
    if threads := options.threads or choose_threads(predictor):
        torch.set_num_threads(threads)
    predictor.warm()
    return serve(predictor, listening, options)


def choose_threads(predictor: Predictor) -> int | None:
    """The CPU threads of the model's computations: one for a small model, whose parts are too short to share; None is
    torch's choice."""
    weights = sum(parameter.numel() for parameter in predictor.model.parameters())
    return 1 if predictor.model.device.type == "cpu" and weights <= SMALL else None


def choose_readers(predictor: Predictor) -> int:
    """The threads that read pictures: one for each core if a thread computes on one core, and the extractors allow it;
    else one."""
    shares = torch.get_num_threads() == 1 and predictor.model.device.type == "cpu" and predictor.features.thread_safe
    return min(len(os.sched_getaffinity(0)), MOST_READERS) if shares else 1


def model_id(predictor: Predictor) -> str:
    """The name of the model for clients: recipe/step."""
    return f"{predictor.recipe.name}/{predictor.step}"


def listen(host: str, port: int) -> socket.socket:
    """A socket that listens on this address. Raises RunError."""
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        # asyncio turns Nagle's algorithm off for sockets that say TCP; with it, answers are 40 ms late
        listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(2048)
    except OSError as error:
        raise RunError(f"--host {host} --port {port}: {error.strerror}; choose another address or port") from None
    return listening


def is_loopback(listening: socket.socket) -> bool:
    """Whether a socket can be reached from this machine only."""
    return ipaddress.ip_address(listening.getsockname()[0]).is_loopback


def serve(predictor: Predictor, listening: socket.socket, options: Options) -> int:
    """Serve a predictor on a socket until a signal; the exit code."""
    readers = choose_readers(predictor)
    service = Service(predictor, model_id(predictor), Limits(), options.window, options.batch, readers)
    address, port = listening.getsockname()[:2]
    shown = f"[{address}]" if ":" in address else address
    tell(f"serving {model_id(predictor)} on http://{shown}:{port} (the page: open this address)")
    if not is_loopback(listening):
        guarded = "with the token" if options.token else "without a token: set --token-file"
        tell(f"listening beyond this machine, {guarded}; put a proxy with TLS in front", err=True)
    engine = service.engine
    server: Server
    app = application(service, options.token, is_loopback(listening), lambda: len(server.server_state.connections))
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_keep_alive=10,
        timeout_graceful_shutdown=max(1, round(options.grace)),
        ws="none",
    )
    server = Server(config, options.grace + SLACK)

    def crash() -> None:
        server.should_exit = True

    engine.on_crash = crash
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)  # broken requests of clients need no warning,
    logging.getLogger("python_multipart").setLevel(logging.ERROR)  # nor do broken forms,
    warnings.filterwarnings("ignore", module=r"PIL\.")  # nor do their broken pictures
    engine.start()
    try:
        asyncio.run(server.serve(sockets=[listening]))
    finally:
        engine.stop(min(options.grace, 1.0))  # nobody waits for an answer any more
        listening.close()
    if engine.error is not None:
        error = engine.error
        tell(f"error: the model's thread died: {type(error).__name__}: {str(error).partition(chr(10))[0]}", err=True)
        return 1
    return 0
