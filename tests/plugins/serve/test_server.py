"""The server as a process: it finishes on SIGTERM, in time, and what clients break is no news."""

import contextlib
import json
import os
import signal
import socket
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from click.testing import CliRunner
from kit import forked, served
from mmgen_serve.command import serve
from mmgen_serve.server import listen

from mmgen.errors import MmgenError, RunError

pytestmark = pytest.mark.slow
SERVE = """
import sys
sys.path[:0] = {path}
import time
from pathlib import Path
from kit import served
from mmgen_serve.server import listen, serve
predictor = served.predictor(Path())
finish = predictor.finish
def held(*values):
    while Path("hold").exists():
        time.sleep(0.01)
    return finish(*values)
predictor.finish = held
listening = listen("127.0.0.1", 0)
Path("new").write_text(str(listening.getsockname()[1]))
Path("new").rename("port")
serve(predictor, listening, "", 0.005, 32, {grace})
"""


class Process:
    """A service in its own process. It answers no question while there is a file `hold` in its folder."""

    def __init__(self, folder, grace=20):
        self.folder = folder
        self.process = forked.start(SERVE.format(path=sys.path, grace=grace), folder=folder)
        while not (folder / "port").exists():
            assert not self.process.ended(), self.process.finish().stderr
            time.sleep(0.01)
        self.port = int((folder / "port").read_text())

    def ask(self):
        body = json.dumps({"inputs": {"image": served.encoded(), "caption": "a dog"}}).encode()
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/v1/ask", body)
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)

    def in_background(self):
        """The answer to come of a question that waits for the model."""
        (self.folder / "hold").touch()
        future = ThreadPoolExecutor(1).submit(self.ask)
        while not self.health()["waiting"]:
            time.sleep(0.01)
        return future

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
def service(request, tmp_path):
    service = Process(tmp_path, **getattr(request, "param", {}))
    yield service
    if not service.process.ended():
        os.kill(service.process.pid, signal.SIGKILL)


def test_sigterm_finishes_what_was_accepted(service):
    answer = service.in_background()
    service.stop()
    assert not answer.done()
    (service.folder / "hold").unlink()
    assert answer.result()["texts"]
    ended = service.process.finish()
    assert ended.returncode == 0, ended.stderr


@pytest.mark.parametrize("service", [{"grace": 1}], indirect=True)
def test_the_end_does_not_wait_longer_than_its_limit(service):
    answer = service.in_background()
    service.stop()
    ended = service.process.finish()
    assert ended.returncode == 0 and "Traceback" not in ended.stderr
    assert isinstance(answer.exception(), OSError)


def test_answers_are_sent_at_once_and_an_address_in_use_is_named():
    """asyncio sets TCP_NODELAY for accepted sockets of the protocol TCP only."""
    with listen("127.0.0.1", 0) as listening:
        assert listening.proto == socket.IPPROTO_TCP
        port = listening.getsockname()[1]
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
    monkeypatch.delattr("mmgen_serve.server", raising=False)
    monkeypatch.setitem(sys.modules, "mmgen_serve.server", None)
    assert 'pip install ".[serve]"' in str(CliRunner().invoke(serve, ["run"]).exception)
