"""Do the jobs, and print a table of what they took."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import click

from . import coverage
from .author import JOBS as AUTHOR
from .engineer import JOBS as ENGINEER
from .researcher import JOBS as RESEARCHER
from .steps import Code, File, Job, Shell, missing

PEOPLE = {"researcher": RESEARCHER, "engineer": ENGINEER, "author": AUTHOR}
PROGRAMS = {
    "mmgen": "mmgen",
    "pytest": "pytest",
    "pip": "pip",
    "torchrun": "torch.distributed.run",
}  # name of a program -> its module
STARTING = 180.0  # seconds that a service may take to start, and to end
LIMIT = 1200.0  # seconds that a step may take


class Desk:
    """A folder to work in, with a virtual environment that sees everything installed here, and where packages can be
    installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.resolve()
        self.programs = self.folder / ".venv/bin"
        if not self.programs.exists():
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.folder / ".venv"], check=True)
            version = f"python{sys.version_info.major}.{sys.version_info.minor}"
            here = sysconfig.get_paths()["purelib"]
            path = self.folder / f".venv/lib/{version}/site-packages/here.pth"
            path.write_text(f"import site; site.addsitedir({here!r})\n")
            for name, module in PROGRAMS.items():
                program = self.programs / name
                program.write_text(f'#!/bin/sh\nexec "{self.programs}/python" -m {module} "$@"\n')
                program.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "HF_HUB_OFFLINE": "1",
            "PIP_NO_INDEX": "1",
            "PIP_NO_DEPS": "1",
            "PIP_NO_BUILD_ISOLATION": "0",  # pip's way to say --no-build-isolation
            "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        }

    def do(self, job: Job) -> dict[str, float]:
        """Does the steps of a job; returns its seconds, and those of processors. Raises click.ClickException with the
        end of a failed step's output."""
        begin, before = time.monotonic(), processor_seconds()
        for package in job.makes:
            if (self.folder / package).exists():
                subprocess.run(
                    ["bash", "-ec", f"pip uninstall -q -y {package}"], cwd=self.folder, env=self.environment, check=True
                )
                shutil.rmtree(self.folder / package)
        with contextlib.ExitStack() as services, (self.folder / f"{slug(job.name)}.log").open("w") as log:
            port = 0
            for step in job.steps:
                if isinstance(step, File):
                    path = self.folder / step.folder / step.path
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text(step.text(), encoding="utf-8")
                    continue
                command = ["python", "-c", step.text()] if isinstance(step, Code) else ["bash", "-ec", line(step, job)]
                log.write(f"\n$ {command[-1]}\n")
                log.flush()
                if isinstance(step, Shell) and step.served:
                    port = free_port()
                    services.enter_context(self._served(f"{command[-1]} --port {port}", port, log.fileno()))
                    continue
                command[-1] = command[-1].replace("127.0.0.1:8000", f"127.0.0.1:{port}")
                before_step = log.tell()
                process = self._start(command, log.fileno())
                status = end_within(process, LIMIT)
                output = Path(log.name).read_bytes()
                new = output[before_step:].decode(errors="replace")
                if status is None:
                    problem = f"killed after {LIMIT:g} seconds"
                else:
                    problem = f"ended with {status}" if status else missing(step, new)
                if problem:
                    tail = output.decode(errors="replace")[-3000:]
                    raise click.ClickException(f"{job.name}: {command[-1]}\n{tail}\n{job.name}: {problem}")
        return {
            "seconds": round(time.monotonic() - begin, 1),
            "processor": round(processor_seconds() - before, 1),
        }

    @contextlib.contextmanager
    def _served(self, command: str, port: int, log: int) -> Iterator[None]:
        """A service, from when it listens until it has ended in an orderly way."""
        process = self._start(shlex.split(command), log)
        try:
            begin = time.monotonic()
            while not listens(port):
                if process.poll() is not None or time.monotonic() - begin > STARTING:
                    raise click.ClickException(f"{command}: does not listen")
                time.sleep(0.2)
            yield
        finally:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
            if status := end_within(process, STARTING):
                raise click.ClickException(f"{command}: ended with {status}")
            if status is None:
                raise click.ClickException(f"{command}: did not end, and was killed")

    def _start(self, command: Sequence[str], log: int) -> subprocess.Popen[bytes]:
        """A process with a group of its own, so that all its children can be ended with it."""
        return subprocess.Popen(
            command, cwd=self.folder, env=self.environment, stdout=log, stderr=log, start_new_session=True
        )


def end_within(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The status of a process; None if it did not end in time, and its group was killed."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def line(step: Shell, job: Job) -> str:
    """The command of a step; every `mmgen run` in it is made small."""
    small = " ".join(f"--set {shlex.quote(setting)}" for setting in (*job.small, *step.small))
    words = step.text().split("; ")
    return "; ".join(f"{word} {small}" if small and "mmgen run " in word else word for word in words)


def processor_seconds() -> float:
    """Seconds that all ended child processes have computed."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def slug(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name)


def free_port() -> int:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        return int(server.getsockname()[1])


def listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def chosen(person: str | None) -> list[tuple[str, Job]]:
    """(person, job) in the order of work: the jobs of one person, after those they need; or all."""
    jobs = [(name, job) for name, jobs_of in PEOPLE.items() for job in jobs_of]
    needed = {job.name for name, job in jobs if person in (None, name)}
    for _, job in reversed(jobs):
        needed |= {*job.needs} if job.name in needed else set()
    return [(name, job) for name, job in jobs if job.name in needed]


def table(rows: Sequence[tuple[str, Job, Mapping[str, float]]]) -> str:
    head = ("person", "job", "steps", "not on a page", "detours", "seconds", "of processors")
    cells = [
        (
            len(job.steps),
            sum(not step.page for step in job.steps),
            len(job.detours),
            round(took.get("seconds", 0)),
            round(took.get("processor", 0)),
        )
        for _, job, took in rows
    ]
    names = [(person, job.name) for person, job, _ in rows] + [("", f"{len(rows)} jobs")]
    lines = [f"| {' | '.join(head)} |", "|---|---|" + "---:|" * 5]
    for name, numbers in zip(names, [*cells, [sum(column) for column in zip(*cells, strict=True)]], strict=True):
        lines.append(f"| {' | '.join(map(str, [*name, *numbers]))} |")
    detours = [f"- {job.name}: {detour}" for _, job, _ in rows for detour in job.detours]
    return "\n".join([*lines, "", *detours])


@click.command()
@click.option("--folder", type=click.Path(path_type=Path, file_okay=False), help="Work here, and go on from here.")
@click.option("--person", type=click.Choice([*PEOPLE]), help="The jobs of one person, and those that they build on.")
@click.option("--list", "only_list", is_flag=True, help="Print the jobs, and what no job uses.")
def week(folder: Path | None, person: str | None, only_list: bool) -> None:
    """Do what three people do in a week, with the commands of the documentation."""
    jobs = chosen(person)
    if only_list:
        click.echo(table([(name, job, {}) for name, job in jobs]))
        click.echo(coverage.exceptions())
        return
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="week-")))
        folder.mkdir(parents=True, exist_ok=True)
        desk, record = Desk(folder), folder / "seconds.json"
        seconds: dict[str, dict[str, float]] = json.loads(record.read_text()) if record.exists() else {}
        for name, job in jobs:
            if job.name not in seconds:
                click.echo(f"{name}: {job.name}")
                seconds[job.name] = desk.do(job)
                record.write_text(json.dumps(seconds, indent=1))
        click.echo(table([(name, job, seconds[job.name]) for name, job in jobs]))


if __name__ == "__main__":
    week()
