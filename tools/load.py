"""Measure a service under load: cold start, answers a second, time to an answer, processor time and memory.

    python -m tools.load "EXPORT [OPTIONS of mmgen serve]" --picture PHOTO --input caption="two red tents"

Starts the service on a free port. So many clients at a time send requests; each sends its next request when it has the
answer to the last. A status of 0 is a request without any answer."""

from __future__ import annotations

import base64
import http.client
import json
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import click
import numpy as np
import psutil

HEADER = "| clients | answers a second | median ms | 95th percentile ms | processor ms | memory MB | statuses |"


def send(address: str, body: bytes, requests: int) -> list[tuple[int, float]]:
    """Status and seconds of each of these requests of one client to /v1/ask."""
    answers = []
    with closing(http.client.HTTPConnection(urlsplit(address).netloc, timeout=120)) as connection:
        for _ in range(requests):
            start, status = time.perf_counter(), 0
            try:
                connection.request("POST", "/v1/ask", body, {"Content-Type": "application/json"})
                response = connection.getresponse()
                response.read()
                status = response.status
            except (OSError, http.client.HTTPException):
                connection.close()
            answers.append((status, time.perf_counter() - start))
    return answers


@contextmanager
def serving(arguments: Sequence[str]) -> Iterator[tuple[str, int]]:
    """The address and the process number of `mmgen serve` with these arguments, until the end of the block."""
    command = [sys.executable, "-m", "mmgen", "serve", *arguments, "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as service:
        try:
            address = re.search(r"http://[\d.]+:\d+", service.stdout.readline())
            if address is None:
                raise SystemExit(f"error: mmgen serve {' '.join(arguments)} does not start; run it to see the reason")
            yield address[0], service.pid
        finally:
            service.send_signal(signal.SIGTERM)


def row(address: str, pid: int, body: bytes, clients: int, requests: int) -> str:
    """The row of the table for so many clients, which send so many requests in all."""
    process = psutil.Process(pid)
    before, start = process.cpu_times(), time.perf_counter()
    with ThreadPoolExecutor(clients) as pool:
        shares = pool.map(lambda _: send(address, body, max(1, requests // clients)), range(clients))
        answers = [answer for share in shares for answer in share]
    total, after = time.perf_counter() - start, process.cpu_times()
    times = [1000 * seconds for status, seconds in answers if status == 200]
    median, high = np.percentile(times or [np.nan], (50, 95))
    processor = 1000 * (after.user + after.system - before.user - before.system) / len(answers)
    statuses = ", ".join(f"{status}: {count}" for status, count in Counter(status for status, _ in answers).items())
    return (
        f"| {clients} | {len(times) / total:.1f} | {median:.0f} | {high:.0f} | {processor:.1f} | "
        f"{process.memory_info().rss / (1 << 20):.0f} | {statuses} |"
    )


@click.command(help=(__doc__ or "").partition("\n")[0])
@click.argument("service")
@click.option("--picture", type=click.Path(path_type=Path, exists=True), help="The picture of every request.")
@click.option("--input", "pairs", multiple=True, metavar="NAME=TEXT", help="A text of every request.")
@click.option("--clients", multiple=True, type=int, default=(1, 8, 32), show_default=True)
@click.option("--requests", type=int, default=200, show_default=True, help="Requests for each number of clients.")
def main(service: str, picture: Path | None, pairs: tuple[str, ...], clients: tuple[int, ...], requests: int) -> None:
    inputs = dict(pair.split("=", 1) for pair in pairs)
    if picture:
        inputs["picture"] = base64.b64encode(picture.read_bytes()).decode()
    body, start = json.dumps({"inputs": inputs}).encode(), time.perf_counter()
    with serving(service.split()) as (address, pid):
        ready = time.perf_counter() - start
        ((status, seconds),) = send(address, body, 1)
        print(f"ready after {ready:.1f} s, first answer {seconds:.2f} s later, status {status}\n")
        print(HEADER, "|---:|---:|---:|---:|---:|---:|---|", sep="\n")
        for count in clients:
            print(row(address, pid, body, count, requests), flush=True)


if __name__ == "__main__":
    main()
