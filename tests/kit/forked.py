"""Scripts in new processes, without the seconds for importing torch and transformers: the standard library's forkserver
has imported them. Tests of starting or importing use `subprocess`."""

import atexit
import contextlib
import multiprocessing
import os
import signal
import socket
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

MMGEN = "import runpy; runpy.run_module('mmgen', run_name='__main__', alter_sys=True)"
IMPORTED = """
    matplotlib.pyplot mmgen.cli.answers mmgen.cli.recipes mmgen.report.page mmgen.inference.load mmgen.runs.run
    mmgen_encoders.encoder mmgen_encoders.loading mmgen_generators.masked mmgen_scenes.dataset mmgen_scenes.draw
    mmgen_scenes.metric mmgen_inputs.text mmgen_vision.cnn rich.progress timm torchvision.transforms.v2
    transformers.models.bert.modeling_bert
""".split()
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
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload([*IMPORTED, *(entry.module for entry in metadata.entry_points(group="mmgen"))])
atexit.register(lambda: [child.kill() for child in multiprocessing.active_children()])  # of tests that failed


class Process:
    """A script that runs in `folder`, with `variables` added to this process's environment."""

    def __init__(self, script: str, *arguments: str, folder: Path, **variables: str) -> None:
        self._files = [tempfile.NamedTemporaryFile("w+") for _ in range(2)]  # noqa: SIM115
        outputs, environment = [file.name for file in self._files], {**os.environ, **variables}
        work = (textwrap.dedent(script), [*map(str, arguments)], folder, environment, outputs)
        self._process = CONTEXT.Process(target=_execute, args=work)
        self._process.start()
        self.pid = self._process.pid

    def ended(self) -> bool:
        return not self._process.is_alive()

    def finish(self) -> subprocess.CompletedProcess:
        """Waits for the end; returns the exit status and all output."""
        self._process.join()
        return subprocess.CompletedProcess("script", self._process.exitcode, *(file.read() for file in self._files))


def _execute(script: str, arguments: list[str], folder: Path, environment: dict[str, str], outputs: list[str]) -> None:
    for number, name in enumerate(outputs, 1):
        os.dup2(os.open(name, os.O_WRONLY | os.O_APPEND), number)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv[:] = ["-c", *arguments]
    sys.path[:0] = ["", *os.environ.get("PYTHONPATH", "").split(os.pathsep)]
    try:
        exec(compile(script, "<script>", "exec"), {"__name__": "__main__"})
    finally:
        atexit._run_exitfuncs()  # the forkserver of Python 3.11 leaves them out


def run(script: str, *arguments: str, folder: Path, **variables: str) -> subprocess.CompletedProcess:
    return Process(script, *arguments, folder=folder, **variables).finish()


def stop_at(
    moment: Path, how: signal.Signals, *arguments: str, folder: Path, before: str = ""
) -> subprocess.CompletedProcess:
    """`mmgen` with these arguments gets a signal when it has written the file `moment`, and waits there for it: it
    cannot end before, however busy the machine is. `before`: code to run first."""
    process = Process(before + textwrap.dedent(HELD), str(moment), *arguments, folder=folder)
    while not (folder / "held").exists():
        assert not process.ended(), process.finish().stderr
        time.sleep(0.01)
    os.kill(process.pid, how)
    (folder / "go").touch()
    return process.finish()


def run_together(
    count: int, script: str, *arguments: str, folder: Path, **variables: str
) -> subprocess.CompletedProcess:
    """Processes that train together, started as by `torchrun`; returns the first exit status other than 0 and all
    output, process by process."""
    with reserved_port() as port:
        shared = {"WORLD_SIZE": count, "LOCAL_WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        processes = []
        for rank in range(count):
            own = {name: str(value) for name, value in {**shared, "RANK": rank, "LOCAL_RANK": rank}.items()}
            processes.append(Process(script, *arguments, folder=folder, **own, **variables))
        results = [process.finish() for process in processes]
    outputs = ("".join(getattr(result, name) for result in results) for name in ("stdout", "stderr"))
    return subprocess.CompletedProcess(script, next((e.returncode for e in results if e.returncode), 0), *outputs)


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port of loopback that no other process is given meanwhile; torch's store, which shares addresses, can use
    it."""
    with socket.socket() as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
