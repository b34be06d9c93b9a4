"""The server as a process: it answers, imports nothing that it does not need, finishes on SIGTERM, and fails loudly."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
import threading
import time
import urllib.error
import urllib.request

import pytest
import uvicorn
from kit import forked, served
from mmgen_serve.server import Server, choose_threads, listen

from mmgen.errors import RunError

pytestmark = pytest.mark.slow
SERVE = """
import sys
sys.path[:0] = {path}
import time
from pathlib import Path
from kit import served
from mmgen_serve.server import Options, listen, serve
predictor = served.predictor(Path())
finish = predictor.finish
def held(*values):
    while Path("hold").exists():
        time.sleep(0.01)
    return finish(*values)
predictor.finish = held
{change}
listening = listen("127.0.0.1", 0)
Path("new").write_text(str(listening.getsockname()[1]))
Path("new").rename("port")
code = serve(predictor, listening, Options(grace={grace}))
print(*sorted({{"matplotlib", "pycocoevalcap"}} & set(sys.modules)), "end", flush=True)
sys.exit(code)
"""
FORGET = """
import sys
for name in list(sys.modules):  # mmgen is imported again, and what it imports of these
    if name.partition(".")[0].startswith(("mmgen", "kit", "matplotlib", "mpl_toolkits", "pycocoevalcap")):
        del sys.modules[name]
"""


class Process:
    """A service in its own process. It answers no question while there is a file `hold` in its folder."""

    def __init__(self, folder, grace=20, change="", before="", clear=False):
        script = before + SERVE.format(path=sys.path, grace=grace, change=change)
        self.folder = folder
        self.process = forked.start(script, folder=folder, clear=clear)
        while not (folder / "port").exists():
            assert not self.process.ended(), self.process.finish().stderr
            time.sleep(0.01)
        self.port = int((folder / "port").read_text())

    def ask(self, timeout=60.0):
        body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/ask", body)
        with urllib.request.urlopen(request, timeout=timeout) as response:
            return json.load(response)

    def in_background(self):
        """Ask in a thread, and hold the answer; returns the thread and a list that gets the answer or the error, when
        the question is in the engine."""
        results: list = []

        def ask():
            try:
                results.append(self.ask())
            except (urllib.error.URLError, OSError) as error:
                results.append(error)

        (self.folder / "hold").touch()
        thread = threading.Thread(target=ask)
        thread.start()
        while not self.health()["waiting"]:
            time.sleep(0.01)
        return thread, results

    def health(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=60) as response:
            return json.load(response)

    def stop(self):
        """Send SIGTERM, and wait until nobody new is served."""
        os.kill(self.process.pid, signal.SIGTERM)
        with contextlib.suppress(urllib.error.URLError, OSError):
            while True:
                self.health()
                time.sleep(0.01)


@pytest.fixture
def process(tmp_path):
    started = []

    def start(**options):
        started.append(Process(tmp_path, **options))
        return started[-1].process, started[-1]

    yield start
    for service in started:
        if not service.process.ended():
            os.kill(service.process.pid, signal.SIGKILL)


def test_sigterm_finishes_what_was_accepted(process):
    running, service = process(before=FORGET)
    thread, results = service.in_background()
    service.stop()
    assert not results
    (service.folder / "hold").unlink()
    thread.join()
    assert results[0]["texts"]
    ended = running.finish()
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[1:] == ["end"]  # neither matplotlib nor pycocoevalcap was imported
    with pytest.raises(urllib.error.URLError):
        service.ask()


def test_the_end_does_not_wait_longer_than_its_limit(process):
    running, service = process(grace=1)
    thread, results = service.in_background()
    service.stop()
    ended = running.finish()
    assert ended.returncode == 0 and "Traceback" not in ended.stderr
    thread.join()
    assert results[0].code == 503
    assert json.load(results[0])["error"]["message"] == "the service is stopping; try again later"


def test_what_clients_break_is_no_news(process):
    running, service = process(clear=True)
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
    service.stop()
    ended = running.finish()
    assert (ended.returncode, ended.stderr) == (0, "")


def test_a_thread_that_dies_ends_the_process_with_an_error(process):
    die = "predictor.finish = lambda *_: (_ for _ in ()).throw(SystemError('CUDA error: gone'))"
    running, service = process(change=die)
    with pytest.raises(urllib.error.HTTPError) as error:
        service.ask()
    assert error.value.code >= 500
    ended = running.finish()
    assert ended.returncode == 1
    assert ended.stderr.splitlines()[-1] == "error: the model's thread died: SystemError: CUDA error: gone"


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


def test_a_thread_that_never_ends_does_not_keep_the_process(tmp_path):
    """Python itself would wait for the thread."""
    script = (
        "import os, signal, threading, time, uvicorn\n"
        "from mmgen_serve.server import Server\n"
        "threading.Thread(target=time.sleep, args=(600,)).start()\n"
        "Server(uvicorn.Config(None), 0.2).handle_exit(signal.SIGTERM, None)\n"
    )
    done = forked.run(script, folder=tmp_path)
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
