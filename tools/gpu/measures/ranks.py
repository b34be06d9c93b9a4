"""One of several processes that run `mmgen`'s command line and may share one GPU.

NCCL refuses two processes on a device, so they communicate through gloo if there are more processes than devices.
With `--fork N` the processes are forked here; otherwise `torch.distributed.run` starts them."""

from __future__ import annotations

import functools
import os
import socket
import sys

import torch
from accelerate.utils import InitProcessGroupKwargs

from mmgen.cli import main
from mmgen.training import distributed


def share_devices() -> None:
    """Make processes communicate through gloo if there are fewer devices than processes."""
    if 0 < torch.cuda.device_count() < int(os.environ.get("WORLD_SIZE", "1")):
        distributed.InitProcessGroupKwargs = functools.partial(InitProcessGroupKwargs, backend="gloo")


def forked(count: int) -> int:
    """Fork this program into this many processes; returns 0 if all exit normally."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    children = []
    for rank in range(count):
        child = os.fork()
        if not child:
            named = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count}
            os.environ |= {name: str(value) for name, value in named.items()}
            os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
            return -1
        children.append(child)
    return max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0 for child in children)


def _run_rank() -> None:
    """Run one process, and end the process group as mmgen does."""
    share_devices()
    try:
        main()
    finally:
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()


if __name__ == "__main__":
    code = -1
    if sys.argv[1] == "--fork":
        _, _, number, *sys.argv[1:] = sys.argv
        code = forked(int(number))
    if code >= 0:
        raise SystemExit(code)
    _run_rank()
