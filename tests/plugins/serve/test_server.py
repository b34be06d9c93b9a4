"""The server as a process: it finishes on SIGTERM, in time, and what clients break is no news."""

import contextlib
import json
import os
import signal
import socket
import threading
import time
import urllib.error
import urllib.request

import pytest
from click.testing import CliRunner
from kit import forked, served, small_runs
from mmgen_serve import Serve
from mmgen_serve.command import listen, serve

from mmgen.errors import MmgenError, RunError

pytestmark = pytest.mark.slow
SERVE = """
import time
from pathlib import Path
import mmgen
from mmgen_serve.command import listen, run
predictor = mmgen.load({run!r}, "both", device="cpu")
finish = predictor.finish
def held(*values):
    while Path("hold").exists():
        time.sleep(0.01)
    return finish(*values)
predictor.finish = held
listening = listen("127.0.0.1", 0)
Path("new").write_text(str(listening.getsockname()[1]))
Path("new").rename("port")
run(predictor, listening, "", 32, {grace})
"""


class Process:
    """A service in its own process. It answers no question while there is a file `hold` in its folder."""

    def __init__(self, folder, grace=20):
        self.folder = folder
        self.process = forked.Process(SERVE.format(run=str(small_runs.drawn("writes")), grace=grace), folder=folder)
        while not (folder / "port").exists():
            assert not self.process.ended(), self.process.finish().stderr
            time.sleep(0.01)
        self.port = int((folder / "port").read_text())

    def ask(self):
        body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
        is_json = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/ask", body, is_json)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def in_background(self):
        """Ask in a thread, and hold the answer; returns the thread and a list that gets the answer or the error, when
        the question waits for the model."""
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
        return started[-1]

    yield start
    for service in started:
        if not service.process.ended():
            os.kill(service.process.pid, signal.SIGKILL)


def test_sigterm_finishes_what_was_accepted(process):
    service = process()
    thread, results = service.in_background()
    service.stop()
    assert not results
    (service.folder / "hold").unlink()
    thread.join()
    assert results[0]["texts"]
    ended = service.process.finish()
    assert ended.returncode == 0, ended.stderr


def test_the_end_does_not_wait_longer_than_its_limit(process):
    service = process(grace=1)
    thread, results = service.in_background()
    service.stop()
    ended = service.process.finish()
    assert ended.returncode == 0 and "Traceback" not in ended.stderr
    thread.join()
    assert isinstance(results[0], OSError)


def test_what_clients_break_is_no_news(process):
    service = process()
    for sent in (
        b"nonsense\r\n\r\n",
        b"POST /v1/ask HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{",
    ):
        with socket.create_connection(("127.0.0.1", service.port), timeout=60) as client:
            client.sendall(sent)
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
    service.ask()
    service.stop()
    ended = service.process.finish()
    assert (ended.returncode, ended.stderr) == (0, "")


def test_answers_are_sent_at_once_and_an_address_in_use_is_named():
    with listen("127.0.0.1", 0) as listening:
        port = listening.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        with pytest.raises(RunError) as error:
            listen("127.0.0.1", port)
    assert str(error.value) == f"--host 127.0.0.1 --port {port}: {os.strerror(98)}; choose another address or port"


def test_the_command_names_what_is_missing(tmp_path, monkeypatch):
    (tmp_path / "token").write_text("\n")
    for arguments, says in (
        (["run", "--token-file", str(tmp_path / "token")], "is empty; write the token into it"),
        (["nowhere", "--port", "0"], "nowhere"),
    ):
        error = CliRunner().invoke(serve, arguments).exception
        assert isinstance(error, MmgenError) and says in str(error)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "fastapi" else name)
    error = CliRunner().invoke(Serve().build(), ["nowhere"]).exception
    assert str(error) == 'mmgen serve needs fastapi; in a checkout of mmgen, run: pip install ".[serve]"'


def test_the_command_says_where_it_listens_and_who_may_ask(tmp_path, monkeypatch):
    monkeypatch.setattr("uvicorn.Server.run", lambda server, sockets: sockets[0].close())
    monkeypatch.setattr(signal, "signal", lambda *_: None)
    (tmp_path / "token").write_text("secret")
    command = [str(small_runs.drawn("writes")), "--step", "both", "--device", "cpu", "--port", "0", "--host", "0.0.0.0"]
    for more, token in (
        ([], "without a token: set --token-file"),
        (["--token-file", str(tmp_path / "token")], "with the token"),
    ):
        done = CliRunner().invoke(serve, [*command, *more])
        assert done.exit_code == 0 and "serving writes/both on http://0.0.0.0:" in done.stdout
        assert f"listening beyond this machine, {token}; put a proxy with TLS in front" in done.stderr
