"""Processes that start with everything imported: `run` and `start` are `subprocess.run` and `Popen` for a script,
without the seconds for importing torch and transformers.

One process imports and waits; a script runs in a fork of it, with its own files, folder and environment, and exits as
Python exits, except that what is imported is not cleared. Tests of starting or importing use `subprocess`.
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
import threading
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path
from typing import NoReturn

MMGEN = "import runpy; runpy.run_module('mmgen', run_name='__main__', alter_sys=True)"
NO_PAGE = f"import mmgen.report; mmgen.report.try_page = lambda *_: None; {MMGEN}"  # a second less; nobody looks at it
IMPORTED = (  # and every plugin
    "PIL.JpegImagePlugin",
    "matplotlib.pyplot",
    "mmgen.cli.answers",
    "mmgen.cli.recipes",
    "mmgen.report.page",
    "mmgen.inference.load",
    "mmgen.runs.run",
    "mmgen_encoders.encoder",
    "mmgen_encoders.loading",
    "mmgen_generators.masked",
    "mmgen_scenes.dataset",
    "mmgen_scenes.draw",
    "mmgen_scenes.metric",
    "mmgen_inputs.text",
    "mmgen_vision.cnn",
    "rich._emoji_codes",
    "rich.progress",
    "timm",
    "torchvision.transforms.v2",
    "transformers.models.bert.modeling_bert",
)
HELD = """
    import sys, time
    from pathlib import Path
    from mmgen.cli import main
    moment, replace = Path(sys.argv.pop(1)), Path.replace

    def held(path, target):  # gives a file its name
        replace(path, target)
        if moment.exists() and not Path("held").exists():
            Path("held").touch()
            while not Path("go").exists():
                time.sleep(0.01)

    Path.replace = held
    main()
"""
LONG = 1 << 20  # bytes; no request is longer


class Process:
    """A running script, with one file for stdout and one for stderr."""

    def __init__(
        self, script: str, arguments: tuple[str, ...], folder: Path, environment: Mapping[str, str], clear: bool = False
    ) -> None:
        self.args = (script, *arguments)
        self._status_socket, theirs = socket.socketpair()
        self._files = [tempfile.TemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        request = {
            "script": script,
            "arguments": arguments,
            "folder": str(folder),
            "environment": dict(environment),
            "clear": clear,
        }
        numbers = [*(file.fileno() for file in self._files), theirs.fileno()]
        socket.send_fds(server()[1], [json.dumps(request).encode()], numbers)
        theirs.close()
        self._answers = self._status_socket.makefile()
        self.pid = int(self._answers.readline())

    @functools.cached_property
    def returncode(self) -> int:
        """Waits for the end."""
        return int(self._answers.readline())

    def ended(self) -> bool:
        """Whether it has; it does not wait."""
        if "returncode" in self.__dict__:
            return True
        self._status_socket.setblocking(False)
        try:
            return bool(self._status_socket.recv(1, socket.MSG_PEEK))
        except BlockingIOError:
            return False
        finally:
            self._status_socket.setblocking(True)

    def finish(self) -> subprocess.CompletedProcess:
        """Waits for the end; returns the exit status and all output."""
        status, outputs = self.returncode, []
        for file in self._files:
            file.seek(0)
            outputs.append(file.read())
            file.close()
        self._answers.close()
        self._status_socket.close()
        return subprocess.CompletedProcess(self.args, status, *outputs)


def start(script: str, *arguments: str, folder: Path, clear: bool = False, **variables: str) -> Process:
    """A script in a new process, in `folder`, with `variables` added to this process's environment. `clear`: at its end
    it clears every module and object, as Python does."""
    return Process(textwrap.dedent(script), tuple(map(str, arguments)), folder, {**os.environ, **variables}, clear)


def run(
    script: str, *arguments: str, folder: Path, clear: bool = False, **variables: str
) -> subprocess.CompletedProcess:
    return start(script, *arguments, folder=folder, clear=clear, **variables).finish()


def stop_at(
    moment: Path, how: signal.Signals, *arguments: str, folder: Path, before: str = ""
) -> subprocess.CompletedProcess:
    """`mmgen` with these arguments gets a signal when it has written the file `moment`, and waits there for it: it
    cannot end before, however busy the machine is. `before`: code to run first."""
    process = start(before + textwrap.dedent(HELD), str(moment), *arguments, folder=folder)
    while not (folder / "held").exists() and not process.ended():
        time.sleep(0.01)
    assert not process.ended(), process.finish().stderr
    os.kill(process.pid, how)
    (folder / "go").touch()
    return process.finish()


def run_together(
    count: int, script: str, *arguments: str, folder: Path, clear: bool = False, **variables: str
) -> subprocess.CompletedProcess:
    """Processes that train together, started as by `torchrun`; returns the first exit status other than 0 and all
    output, process by process."""
    with reserved_port() as port:
        shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes = [
            start(
                script,
                *arguments,
                folder=folder,
                clear=clear,
                **{name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()},
                **variables,
            )
            for rank in range(count)
        ]
        results = [process.finish() for process in processes]
    outputs = "".join(process.stdout for process in results), "".join(process.stderr for process in results)
    return subprocess.CompletedProcess(script, next((e.returncode for e in results if e.returncode), 0), *outputs)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port of loopback that no other process is given meanwhile; torch's store, which shares addresses, can use
    it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


@functools.cache
def server() -> tuple[subprocess.Popen, socket.socket]:
    ours, theirs = socket.socketpair()
    process = subprocess.Popen(
        [sys.executable, __file__, str(theirs.fileno())], pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL
    )
    theirs.close()
    return process, ours


def stop() -> None:
    """Ends the waiting process, if any."""
    if server.cache_info().currsize:
        process, ours = server()
        ours.close()
        process.wait()
        server.cache_clear()


def serve(ours: socket.socket) -> dict | None:
    """Forks for every request; returns the request in the fork, and None when the socket is closed."""
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
    gc.disable()  # collections take a quarter of the time of imports, and find nothing
    for name in (*IMPORTED, *(entry.module for entry in metadata.entry_points(group="mmgen"))):
        __import__(name)
    gc.freeze()  # what is here already need not be looked through in every fork
    gc.enable()
    request = serve(socket.socket(fileno=int(sys.argv[1])))
    if request is None:
        os._exit(0)  # clearing what is imported takes a second, and Triton would print what is left
    atexit.register(gc.unfreeze)  # what an interpreter leaves behind, Triton tells on the standard error stream
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(request["environment"])
    os.chdir(request["folder"])
    sys.argv[:] = ["-c", *request["arguments"]]
    tests = str(Path(__file__).resolve().parents[1])  # instead of this file's folder
    sys.path[:1] = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep), tests]
    try:
        exec(compile(request["script"], "<script>", "exec"), {"__name__": "__main__"})
    except SystemExit as ending:
        if request["clear"]:
            raise
        if not isinstance(ending.code, int | None):
            print(ending.code, file=sys.stderr)
        end(ending.code if isinstance(ending.code, int) else int(ending.code is not None))
    if not request["clear"]:
        end(0)


def end(status: int) -> NoReturn:
    """Exits as Python does: waits for threads, calls what is registered, flushes. To clear every module and object, as
    Python does at last, would take two seconds of processor time in a fork, which copies their memory for that."""
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status & 0xFF)


if __name__ == "__main__":
    main()
