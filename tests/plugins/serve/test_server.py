"""The server as a process: it answers, imports nothing that it does not need, finishes on SIGTERM, and fails loudly."""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import urllib.error
import urllib.request

import pytest
import uvicorn
from kit import served
from mmgen_serve.server import Server, choose_threads, listen

from mmgen.errors import RunError

pytestmark = pytest.mark.slow
SERVE = """
import sys
sys.path[:0] = {path}
import threading, time
from pathlib import Path
from kit import served
from mmgen_serve.server import Options, listen, serve
predictor = served.predictor(Path({folder!r}))
finish = predictor.finish
def slowly(*values):
    time.sleep({seconds})
    return finish(*values)
predictor.finish = slowly
{change}
listening = listen("127.0.0.1", 0)
print(listening.getsockname()[1], flush=True)
code = serve(predictor, listening, Options(grace={grace}))
print(*sorted({{"matplotlib", "pycocoevalcap"}} & set(sys.modules)), "end", flush=True)
sys.exit(code)
"""


class Process:
    """A service in its own process."""

    def __init__(self, folder, seconds=0.0, grace=20, change=""):
        script = SERVE.format(path=sys.path, folder=str(folder), seconds=seconds, grace=grace, change=change)
        self.popen = subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.port = int(self.popen.stdout.readline() or 0)
        assert self.port, self.popen.stderr.read()

    def ask(self, timeout=60.0):
        body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/ask", body)
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)

    def in_background(self):
        """Ask in a thread; returns the thread and a list that gets the answer or the error."""
        results: list = []

        def ask():
            try:
                results.append(self.ask())
            except (urllib.error.URLError, OSError) as error:
                results.append(error)

        thread = threading.Thread(target=ask)
        thread.start()
        return thread, results

    def until_waiting(self):
        """Wait until a request is in the engine."""
        while True:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=60) as response:
                if json.load(response)["waiting"]:
                    return


@pytest.fixture
def process(tmp_path):
    started = []

    def start(**options):
        started.append(Process(tmp_path, **options))
        return started[-1]

    yield start
    for service in started:
        service.popen.kill()
        service.popen.communicate()


def test_sigterm_finishes_what_was_accepted(process):
    service = process(seconds=0.5)
    thread, results = service.in_background()
    service.until_waiting()
    service.popen.send_signal(signal.SIGTERM)
    thread.join(60)
    assert results[0]["texts"]
    out, err = service.popen.communicate(timeout=60)
    assert service.popen.returncode == 0, err
    assert out.strip() == "end"  # neither matplotlib nor pycocoevalcap was imported
    with pytest.raises(urllib.error.URLError):
        service.ask(timeout=5)


def test_the_end_does_not_wait_longer_than_its_limit(process):
    service = process(seconds=3600, grace=1, change="")
    thread, results = service.in_background()
    service.until_waiting()
    service.popen.send_signal(signal.SIGTERM)
    assert service.popen.wait(60) == 0
    thread.join(60)
    assert results[0].code == 503
    assert json.load(results[0])["error"]["message"] == "the service is stopping; try again later"
    assert "Traceback" not in service.popen.stderr.read()


def test_what_clients_break_is_no_news(process):
    service = process()
    for sent in (
        b"nonsense\r\n\r\n",
        b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
        b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=z\r\n"
        b"Content-Length: 9\r\n\r\n--secret-",
        b"GET /none HTTP/1.1\r\nHost: localhost\r\nConnection: close, upgrade\r\nUpgrade: websocket\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
    service.ask()
    service.popen.send_signal(signal.SIGTERM)
    _, err = service.popen.communicate(timeout=60)
    assert (service.popen.returncode, err) == (0, "")


def test_a_thread_that_dies_ends_the_process_with_an_error(process):
    die = "predictor.finish = lambda *_: (_ for _ in ()).throw(SystemError('CUDA error: gone'))"
    service = process(change=die)
    with pytest.raises(urllib.error.HTTPError) as error:
        service.ask()
    assert error.value.code >= 500
    _, err = service.popen.communicate(timeout=60)
    assert service.popen.returncode == 1
    assert err.splitlines()[-1] == "error: the model's thread died: SystemError: CUDA error: gone"


def test_an_address_in_use():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(RunError) as error:
            listen("127.0.0.1", port)
    assert str(error.value) == (f"--host 127.0.0.1 --port {port}: {os.strerror(98)}; choose another address or port")


def test_a_small_model_computes_on_one_thread(predictor, monkeypatch):
    assert choose_threads(predictor) == 1
    monkeypatch.setattr("mmgen_serve.server.SMALL", 10)
    assert choose_threads(predictor) is None


def test_answers_are_sent_at_once():
    """asyncio sets TCP_NODELAY for accepted sockets of the protocol TCP only."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP


def test_a_thread_that_never_ends_does_not_keep_the_process():
    """Python itself would wait for the thread."""
    script = (
        "import os, signal, threading, time, uvicorn\n"
        "from mmgen_serve.server import Server\n"
        "threading.Thread(target=time.sleep, args=(60,)).start()\n"
        "Server(uvicorn.Config(None), 0.2).handle_exit(signal.SIGTERM, None)\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=50)
    assert done.returncode == 0
    assert done.stderr == "a thread is still running; the process ends without it\n"


def test_a_connection_that_is_accepted_while_the_service_ends_is_closed_after_its_answer(monkeypatch):
    """Its client would send request after request until the time for answers ends, and lose the last answer."""
    closed: list[str] = []

    class Connection:
        def __init__(self, name):
            self.name = name

        def shutdown(self):
            closed.append(self.name)
            server.server_state.connections.discard(self)

    async def shutdown(self, sockets):
        """As uvicorn's: the connections that are there, then a wait for all. One more comes in between."""
        for connection in list(self.server_state.connections):
            connection.shutdown()
        await asyncio.sleep(0)
        self.server_state.connections.add(Connection("late"))
        while self.server_state.connections:
            await asyncio.sleep(0.01)

    monkeypatch.setattr(uvicorn.Server, "shutdown", shutdown)
    server = Server(uvicorn.Config(lambda: None), 60)
    server.server_state.connections.add(Connection("early"))
    asyncio.run(asyncio.wait_for(server.shutdown([]), 10))
    assert closed == ["early", "late"]
