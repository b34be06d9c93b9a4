"""Processes that begin with everything imported: `run` and `start` are `subprocess.run` and `Popen` for a script,
without the seconds that importing torch and transformers takes.

One process imports and then waits; a script runs in a fork of it, with files, folder and environment of its own, and
ends as Python ends. A test about starting itself, or about what is imported when, uses `subprocess`.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import gc
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Mapping
from pathlib import Path

MMGEN = "import runpy; runpy.run_module('mmgen', run_name='__main__', alter_sys=True)"
NO_PAGE = f"import mmgen.report; mmgen.report.try_page = lambda *_: None; {MMGEN}"  # a second less; nobody looks at it
IMPORTED = (
    "matplotlib.pyplot",
    "mmgen.cli.runs",
    "mmgen.report.page",
    "mmgen.inference.load",
    "mmgen.runs.run",
    "mmgen_encoders.encoder",
    "mmgen_encoders.loading",
    "mmgen_masked.generator",
    "mmgen_scenes.dataset",
    "mmgen_scenes.metric",
    "mmgen_text.embedder",
    "rich.progress",
    "torchvision.transforms.v2",
    "transformers.models.bert.modeling_bert",
)
LONG = 1 << 20  # bytes; no request is longer


class Process:
    """A script that runs; what it says goes into one file each for stdout and stderr."""

    def __init__(self, script: str, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str]) -> None:
        self.args = (script, *arguments)
        self._told, theirs = socket.socketpair()
        self._files = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        asked = {"script": script, "arguments": arguments, "folder": str(folder), "environment": dict(environment)}
        numbers = [*(file.fileno() for file in self._files), theirs.fileno()]
        socket.send_fds(server()[1], [json.dumps(asked).encode()], numbers)
        theirs.close()
        self._answers = self._told.makefile()
        self.pid = int(self._answers.readline())

    @functools.cached_property
    def returncode(self) -> int:
        """Waits for the end."""
        return int(self._answers.readline())

    def ended(self) -> bool:
        """Whether it has; it does not wait."""
        self._told.setblocking(False)
        try:
            return "returncode" in self.__dict__ or bool(self._told.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._told.setblocking(True)

    def finish(self) -> subprocess.CompletedProcess:
        """Wait for the end -> its exit status, and all that it has said."""
        status, said = self.returncode, []
        for file in self._files:
            file.seek(0)
            said.append(file.read())
            file.close()
        self._answers.close()
        self._told.close()
        return subprocess.CompletedProcess(self.args, status, *said)


def start(script: str, *arguments: str, folder: Path, **variables: str) -> Process:
    """A script in a process of its own, in `folder`, with `variables` beside this process's environment."""
    return Process(textwrap.dedent(script), tuple(map(str, arguments)), folder, {**os.environ, **variables})


def run(script: str, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    return start(script, *arguments, folder=folder, **variables).finish()


def together(count: int, script: str, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    """Processes that learn together, as `torchrun` starts them -> the first exit status that is not 0, and all that
    they have said, one after the other."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    processes = [
        start(
            script,
            *arguments,
            folder=folder,
            **{name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()},
            **variables,
        )
        for rank in range(count)
    ]
    ended = [process.finish() for process in processes]
    said = "".join(each.stdout for each in ended), "".join(each.stderr for each in ended)
    return subprocess.CompletedProcess(script, next((e.returncode for e in ended if e.returncode), 0), *said)


@functools.cache
def server() -> tuple[subprocess.Popen, socket.socket]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
    )
    theirs.close()
    return process, ours


def stop() -> None:
    """End the process that waits, where there is one."""
    if server.cache_info().currsize:
        process, ours = server()
        ours.close()
        process.wait()
        server.cache_clear()


def serve(ours: socket.socket) -> dict | None:
    """Fork for every request; returns it in the fork, and None when nobody is left to ask."""
    while True:
        with contextlib.suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        request, numbers, *_ = socket.recv_fds(ours, LONG, 3)
        if not request:
            return None
        if not os.fork():
            out, err, asker = numbers
            if not (child := os.fork()):
                ours.close()
                os.close(asker)
                os.dup2(out, 1)
                os.dup2(err, 2)
                return json.loads(request)
            os.write(asker, f"{child}\n".encode())
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            os.write(asker, f"{status}\n".encode())
            os._exit(0)
        for number in numbers:
            os.close(number)


def main() -> None:
    for name in IMPORTED:
        __import__(name)
    gc.freeze()  # what is here already need not be looked through in every fork
    asked = serve(socket.socket(fileno=int(sys.argv[1])))
    if asked is None:
        return
    atexit.register(gc.unfreeze)  # what an interpreter leaves behind, Triton tells on the standard error stream
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(asked["environment"])
    os.chdir(asked["folder"])
    sys.argv[:] = ["-c", *asked["arguments"]]
    tests = str(Path(__file__).resolve().parents[1])  # instead of this file's folder
    sys.path[:1] = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep), tests]
    exec(compile(asked["script"], "<script>", "exec"), {"__name__": "__main__"})


if __name__ == "__main__":
    main()
