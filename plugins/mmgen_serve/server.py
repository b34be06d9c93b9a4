"""The server: a model's application in uvicorn until a signal."""

from __future__ import annotations

import ipaddress
import logging
import os
import signal
import socket
import warnings

import torch
import uvicorn

from mmgen.errors import RunError
from mmgen.inference.load import load
from mmgen.inference.predictor import Predictor
from mmgen.progress import tell

from .app import Service, create_app

MOST_READERS = 4
MOST_REQUESTS = 256  # at a time; further ones are refused with 503
SMALL = 5_000_000  # weights, as for training. With 0.5 M, an answer takes 33 ms on one thread, 49 ms on two


def load_model(where: str, step: str | None, device: str | None, dtype: str, threads: int | None) -> Predictor:
    """A predictor that is warm. A small model computes on one thread: its parts are too short to share."""
    predictor = load(where, step=step, device=device, dtype=dtype)
    small = sum(parameter.numel() for parameter in predictor.model.parameters()) <= SMALL
    if threads or (small and predictor.model.device.type == "cpu"):
        torch.set_num_threads(threads or 1)
    predictor.warm()
    return predictor


def choose_readers(predictor: Predictor) -> int:
    """The threads that read pictures: one for each core if a thread computes on one core, and the extractors allow it;
    else one."""
    shares = torch.get_num_threads() == 1 and predictor.model.device.type == "cpu" and predictor.features.thread_safe
    return min(len(os.sched_getaffinity(0)), MOST_READERS) if shares else 1


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


def serve(predictor: Predictor, listening: socket.socket, token: str, window: float, batch: int, grace: int) -> None:
    """Serve a predictor until SIGTERM or Ctrl-C; then what was accepted is answered, within `grace` seconds."""
    host, port = listening.getsockname()[:2]
    name, loopback = f"{predictor.recipe.name}/{predictor.step}", ipaddress.ip_address(host).is_loopback
    app = create_app(Service(predictor, window, batch, choose_readers(predictor)), name, token, loopback)
    address = f"[{host}]" if ":" in host else host
    tell(f"serving {name} on http://{address}:{port} (the page: open this address)")
    if not loopback:
        guarded = "with the token" if token else "without a token: set --token-file"
        tell(f"listening beyond this machine, {guarded}; put a proxy with TLS in front", err=True)
    for number in (signal.SIGINT, signal.SIGTERM):  # uvicorn raises them again at its end
        signal.signal(number, lambda *_: None)
    for library in ("uvicorn.error", "python_multipart"):  # broken requests of clients are no news,
        logging.getLogger(library).setLevel(logging.CRITICAL)
    warnings.filterwarnings("ignore", module=r"PIL\.")  # nor are their broken pictures
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        limit_concurrency=MOST_REQUESTS,
        timeout_graceful_shutdown=grace,
    )
    uvicorn.Server(config).run(sockets=[listening])
