"""Inputs that read files: clients send bytes with a name, and none of their strings becomes a path."""

import base64
import os

import pytest
from kit import files, served

from mmgen.errors import PluginError
from mmgen.inference.query import Query
from mmgen.parts import File

CONTENT = b"RIFF of a sound"
ENCODED = base64.b64encode(CONTENT).decode()


@pytest.fixture(scope="module")
def listener():
    return files.predictor()


@pytest.fixture(scope="module")
def client(listener):
    with served.client(listener) as opened:
        yield opened


def sent(client, value, form: bool = False):
    if form:
        return client.post("/v1/ask", files={"sound": (None, value)})  # a field of text
    return client.post("/v1/ask", json={"inputs": {"sound": value}})


def test_a_file_arrives_as_bytes_with_the_name_that_its_client_gives(client, listener, tmp_path):
    (tmp_path / "a.wav").write_bytes(CONTENT)
    files.READ.clear()
    listener.warm()
    assert not files.READ  # it knows no file to try
    (text,) = listener.ask({"sound": tmp_path / "a.wav"}).texts
    expected = {"text": text.text, "score": round(text.score, 4)}
    files.READ.clear()
    by_form = client.post("/v1/ask", files={"sound": ("../../etc/a.wav", CONTENT)})
    windows = client.post("/v1/ask", files={"sound": ("C:\\sounds\\b.wav", CONTENT)})
    url = sent(client, f"data:audio/wav;codecs=1;base64,{ENCODED}")
    for response in (by_form, windows, sent(client, ENCODED), url, sent(client, ENCODED, form=True)):
        assert response.status_code == 200 and response.json()["texts"] == [expected], response.text
    assert [file.name for file in files.READ] == ["a.wav", "b.wav", *["the file"] * 3]
    assert all(isinstance(file, File) and file.content == CONTENT for file in files.READ)
    assert client.get("/v1/models").json()["data"][0]["mmgen"]["inputs"] == {"sound": "file"}


@pytest.mark.parametrize("form", [False, True])
def test_a_string_of_a_client_is_never_a_path(client, tmp_path, form):
    own = tmp_path / "abcd"
    own.write_bytes(b"secret")
    files.READ.clear()
    paths = ("/etc/passwd", "file:///etc/passwd", str(own), f"file://{own}", "../../../../etc/passwd", "~/.profile")
    for value in (*paths, os.path.relpath(own), "http://x.org/a.wav", "data:,a", "data:text/plain,/etc/passwd", ""):
        response = sent(client, value, form)
        assert response.status_code == 400 and response.json()["error"]["message"].startswith("inputs.sound: "), value
        assert "secret" not in response.text
    assert not files.READ


@pytest.mark.parametrize("value", [7, ["/etc/passwd"], {"picture": "/etc/passwd"}])
def test_a_file_is_nothing_else(client, value):
    files.READ.clear()
    message = "inputs.sound: not valid base64; encode the bytes of the file"
    assert sent(client, value).json()["error"]["message"] == message and not files.READ


def test_the_core_takes_no_string_of_a_stranger_for_a_path(listener):
    """However a service reads its requests."""
    (answer,) = listener.answers([Query("q", {"sound": "/etc/passwd"}, folder=None)])
    assert answer.error == "q: sound: expected a file, but got '/etc/passwd'"


def test_an_input_that_does_not_say_what_it_takes_is_not_served():
    with pytest.raises(PluginError) as error, served.client(files.predictor(files.Undeclared)):
        pass
    assert str(error.value) == (
        "input 'sound': type 'undeclared' does not say what it takes, so it cannot be served; its plugin must set "
        'takes = "text", "picture" or "file" in the config'
    )
