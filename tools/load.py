"""The load of a service: `python -m tools.load URL --picture PHOTO --input caption=TEXT` sends requests from several
clients at a time, and prints requests a second, median and 95th percentile of the time to an answer.

Every client sends its next request when it has the answer to the last. `--broken` sends a share of broken requests,
which must be refused; a request without any answer is lost. With `--serve RUN` instead of an address, the service is
started, and its cold start, its memory and its processor time for a request are printed too. `--every` prints a row
for every so many requests.
"""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import click
import numpy as np

BROKEN = (b"{", b'{"n": 0}', b'{"inputs": {"image": "http://x.org/a.png"}}', b"[" * 5000)


@dataclass
class Load:
    """What clients saw: seconds of answered requests, and how many had each status; 0 is a request that was lost."""

    seconds: list[float] = field(default_factory=list)
    statuses: Counter[int] = field(default_factory=Counter)
    total: float = 0.0

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.seconds) / self.total

    def percentile(self, share: float) -> float:
        """Milliseconds in which this share of the answers came."""
        return 1000 * float(np.percentile(self.seconds, share))


def send(address: str, body: bytes, clients: int, requests: int, broken: float = 0.0) -> Load:
    """Send `requests` requests from `clients` clients to /v1/ask. `broken`: the share of broken ones."""
    load, lock, numbers = Load(), threading.Lock(), iter(range(requests))
    every = round(1 / broken) if broken else requests + 1

    def client() -> None:
        connection = http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            sent = BROKEN[number % len(BROKEN)] if number % every == every - 1 else body
            start, status = time.perf_counter(), 0
            try:
                connection.request("POST", "/v1/ask", sent, {"Content-Type": "application/json"})
                response = connection.getresponse()
                response.read()
                status = response.status
            except (OSError, http.client.HTTPException):
                connection.close()
            with lock:
                load.statuses[status] += 1
                if status == 200:
                    load.seconds.append(time.perf_counter() - start)

    threads = [threading.Thread(target=client) for _ in range(clients)]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    load.total = time.perf_counter() - start
    return load


@contextmanager
def serving(arguments: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The address and the process number of `mmgen serve` with these arguments, on any free port, until the end of the
    block."""
    command = [sys.executable, "-m", "mmgen", "serve", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        assert service.stdout is not None
        try:
            address = re.search(r"http://[\d.]+:\d+", service.stdout.readline())
            if address is None:
                raise SystemExit(f"error: mmgen serve {' '.join(arguments)} does not start; run it to see the reason")
            yield address[0], service.pid
        finally:
            service.send_signal(signal.SIGTERM)


def memory(pid: int) -> float:
    """Resident memory of a process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith("VmRSS:"))) / 1024


def processor_seconds(pid: int) -> float:
    """Seconds of processor time that a process has used."""
    values = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")


@click.command()
@click.argument("address", required=False)
@click.option("--serve", "where", help="Start this service instead: a run or an export, and options of mmgen serve.")
@click.option("--picture", type=click.Path(path_type=Path, exists=True), help="The picture of every request.")
@click.option("--input", "pairs", multiple=True, metavar="NAME=TEXT", help="A text of every request.")
@click.option("--clients", multiple=True, type=int, default=(1, 8, 32), show_default=True)
@click.option("--requests", type=int, default=200, show_default=True, help="Requests for each number of clients.")
@click.option("--broken", type=click.FloatRange(0, 0.5), default=0.0, help="The share of broken requests.")
@click.option("--pid", type=int, help="The process of the service, whose memory is printed.")
@click.option("--every", type=int, help="Print a row for every so many requests.")
def main(
    address: str | None,
    where: str | None,
    picture: Path | None,
    pairs: tuple[str, ...],
    clients: tuple[int, ...],
    requests: int,
    broken: float,
    pid: int | None,
    every: int | None,
) -> None:
    """Measure the service at ADDRESS, such as http://127.0.0.1:8000."""
    if (address is None) == (where is None):
        raise click.UsageError("give either ADDRESS or --serve")
    request: dict[str, object] = {"inputs": dict(pair.split("=", 1) for pair in pairs)}
    if picture:
        request["picture"] = base64.b64encode(picture.read_bytes()).decode()
    body = json.dumps(request).encode()
    parts = [min(every or requests, requests - first) for first in range(0, requests, every or requests)]
    jobs = [(count, part) for count in clients for part in parts]
    if address is not None:
        measure(address, body, jobs, broken, pid)
        return
    start = time.perf_counter()
    with serving((where or "").split()) as (address, pid):
        ready = time.perf_counter() - start
        first = send(address, body, 1, 1)
        total = time.perf_counter() - start
        print(f"ready after {ready:.1f} s, first answer after {total:.1f} s: {dict(first.statuses)}\n")
        measure(address, body, jobs, broken, pid)


def measure(address: str, body: bytes, jobs: Sequence[tuple[int, int]], broken: float, pid: int | None) -> None:
    """Print a table with a row for every job: so many clients, so many requests."""
    send(address, body, 1, 5)  # warm up
    print("| clients | answers a second | median ms | 95th percentile ms | processor ms | statuses | memory MB |")
    print("|---:|---:|---:|---:|---:|---|---:|")
    for count, requests in jobs:
        before = processor_seconds(pid) if pid else 0.0
        load = send(address, body, count, requests, broken)
        spent = f"{1000 * (processor_seconds(pid) - before) / requests:.1f}" if pid else ""
        statuses = ", ".join(f"{status}: {number}" for status, number in sorted(load.statuses.items()))
        used = f"{memory(pid):.0f}" if pid else ""
        median, high = (f"{load.percentile(share):.0f}" if load.seconds else "" for share in (50, 95))
        print(f"| {count} | {load.rate:.1f} | {median} | {high} | {spent} | {statuses} | {used} |", flush=True)


if __name__ == "__main__":
    main()
