"""The surfaces of kills that are the service: ended under load by SIGKILL and by SIGTERM, and started again.

After SIGKILL the port is free, nothing is left over, and a service on the same port gives the same answers. After
SIGTERM every request that the service had accepted gets its answer, and the exit code is 0."""

from __future__ import annotations

import http.client
import json
import math
import os
import random
import shutil
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from kit import served

from mmgen.inference.predictor import Predictor

from . import forks
from .piece import Outcome

CLIENTS = 3
MOST = 0.3  # seconds under load
BODY = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
REFUSED = (0, 503)  # what a request may get while the service ends: no answer, or this status
VARYING = ("id", "created", "seconds")  # keys of an answer that name it, or say when it was given
ROUNDING = 1e-3  # numbers may differ as much, since other requests share a batch


class Load:
    """Clients that send one request after another to a port, until the end of the block. `answers`: status and content
    of every answer; status 0 is a request without any."""

    def __init__(self, port: int) -> None:
        self.port, self.answers, self._stop = port, list[tuple[int, bytes]](), threading.Event()
        self._threads = [threading.Thread(target=self._send) for _ in range(CLIENTS)]

    def __enter__(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _send(self) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        while not self._stop.is_set():
            self.answers.append(answer := ask(connection))
            if not answer[0]:
                time.sleep(0.005)
        connection.close()


def ask(connection: http.client.HTTPConnection) -> tuple[int, bytes]:
    """Status and content of the answer to a request; status 0 if there is none."""
    try:
        connection.request("POST", "/v1/ask", BODY, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        connection.close()
        return 0, b""


def same(left: object, right: object) -> bool:
    """Whether two answers are the same but for what varies, and for rounding."""
    if isinstance(left, dict) and isinstance(right, dict):
        keys = {*left, *right}.difference(VARYING)
        return all(key in left and key in right and same(left[key], right[key]) for key in keys)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=ROUNDING, abs_tol=ROUNDING)
    return type(left) is type(right) and left == right


class Serving:
    """The surface of a service that is ended by the signal `how`."""

    def __init__(self, predictor: Predictor, how: signal.Signals, folder: Path) -> None:
        from mmgen_serve.server import listen

        self.name, self.predictor, self.how = f"service, {how.name}", predictor, how
        self.place, self.accepted = folder / "case", folder / "accepted"
        predictor.warm()
        with listen("127.0.0.1", 0) as listening:
            self.port = listening.getsockname()[1]
        with self._running() as service:
            self.expected = json.loads(self._ask()[1])
            service.kill(signal.SIGTERM)
            if (ending := service.wait()).status:
                raise SystemExit(f"error: the undisturbed service failed: {ending.output}")

    def case(self, draw: random.Random) -> Outcome:
        """End the service once under load; after SIGKILL, start it again."""
        wrong: list[str] = []
        with self._running() as service, Load(self.port) as load:
            time.sleep(draw.uniform(0, MOST))
            service.kill(self.how)
            ending = service.wait()
        wrong += self._left_over() + self._unexpected(ending, load)
        wrong += self._started_again() if self.how == signal.SIGKILL else self._ended_in_order(ending, load)
        answers = [content for status, content in load.answers if status == 200]
        wrong += [f"{number} answers are others" for number in [sum(map(self._differs, answers))] if number]
        return Outcome(self.name, 1, tuple(wrong))

    def _unexpected(self, ending: forks.Ending, load: Load) -> list[str]:
        """Statuses that no answer may have, and errors that the service has printed."""
        log = ending.output[-300:].strip()
        wrong = [f"status {status} of an answer: {log}" for status, _ in load.answers if status not in (200, *REFUSED)]
        return wrong + forks.complaints(ending.errors)

    def _ended_in_order(self, ending: forks.Ending, load: Load) -> list[str]:
        statuses, wrong = [status for status, _ in load.answers], list[str]()
        if ending.status:
            wrong.append(f"exit code {ending.status}: {ending.output[-300:].strip()}")
        if (accepted := self.accepted.stat().st_size) != statuses.count(200):
            wrong.append(f"{accepted} requests were accepted, and {statuses.count(200)} answered")
        return wrong

    def _started_again(self) -> list[str]:
        with self._running() as service:
            status, content = self._ask()
            service.kill(signal.SIGTERM)
            ending = service.wait()
        if status != 200 or self._differs(content) or ending.status:
            return [f"started again, it answers {status} {content!r:.100}, and ends with {ending.status}"]
        return self._left_over() + forks.complaints(ending.errors)

    def _left_over(self) -> list[str]:
        """Files, processes and the port that an ended service still has."""
        temporary = Path(f"{self.place}.tmp")
        wrong = [f"{path.name} is left over" for folder in (self.place, temporary) for path in folder.iterdir()]
        wrong += [f"process {pid} is left over" for pid in forks.survivors(self.place)]
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", self.port)) == 0:
                wrong.append(f"port {self.port} is left over")
        return wrong

    def _differs(self, content: bytes) -> bool:
        return not same(json.loads(content), self.expected)

    @contextmanager
    def _running(self) -> Iterator[forks.Fork]:
        """A service that answers. If it has not ended at the end of the block, it is killed."""
        for path in (self.place, Path(f"{self.place}.tmp")):
            shutil.rmtree(path, ignore_errors=True)
        self.place.mkdir(parents=True)
        self.accepted.write_bytes(b"")
        service = forks.Fork(self._serve, self.place)
        try:
            until = time.monotonic() + 60
            while not self._is_ready():
                if service.ended() or time.monotonic() > until:
                    raise SystemExit(f"error: the service does not start: {service.log.read_text()}")
                time.sleep(0.002)
            yield service
        finally:
            with suppress(ChildProcessError, ProcessLookupError):
                service.kill()
                service.wait()

    def _is_ready(self) -> bool:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def _ask(self) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            return ask(connection)
        finally:
            connection.close()

    def _serve(self) -> None:
        """The service, in a fork. It writes a byte for every request that its engine has accepted."""
        from mmgen_serve.engine import Engine, Job
        from mmgen_serve.server import Options, listen, serve

        accepted, submit = os.open(self.accepted, os.O_WRONLY | os.O_APPEND), Engine.submit

        def counted(engine: Engine, job: Job) -> object:
            future = submit(engine, job)
            os.write(accepted, b"x")
            return future

        Engine.submit = counted  # type: ignore[method-assign]
        sys.exit(serve(self.predictor, listen("127.0.0.1", self.port), Options(grace=20)))
