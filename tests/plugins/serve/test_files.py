"""Inputs that read files: clients send bytes with a name, and none of their strings becomes a path."""

import base64
import os

import pytest
from kit import files, served
from kit.refusals import refusal

from mmgen.errors import PluginError
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


def sent(client, value):
    return client.post("/v1/ask", json={"inputs": {"sound": value}})


def test_a_file_arrives_as_bytes(client, listener, tmp_path):
    (tmp_path / "a.wav").write_bytes(CONTENT)
    files.READ.clear()
    listener.warm()
    assert not files.READ  # it knows no file to try
    (text,) = listener.ask({"sound": tmp_path / "a.wav"}).texts
    expected = {"text": text.text, "score": round(text.score, 4)}
    files.READ.clear()
    url = sent(client, f"data:audio/wav;codecs=1;base64,{ENCODED}")
    for response in (sent(client, ENCODED), url):
        assert response.status_code == 200 and response.json()["texts"] == [expected], response.text
    assert len(files.READ) == 2 and all(isinstance(file, File) and file.content == CONTENT for file in files.READ)
    assert client.get("/v1/models").json()["data"][0]["mmgen"]["inputs"] == {"sound": "file"}


def test_a_string_of_a_client_is_never_a_path(client, tmp_path):
    own = tmp_path / "abcd"
    own.write_bytes(b"secret")
    files.READ.clear()
    paths = ("/etc/passwd", "file:///etc/passwd", str(own), f"file://{own}", "../../../../etc/passwd", "~/.profile")
    for value in (*paths, os.path.relpath(own), "http://x.org/a.wav", "data:,a", "data:text/plain,/etc/passwd", ""):
        response = sent(client, value)
        says = "the request: sound: expected base64 of a file"
        assert response.status_code == 400 and response.json()["error"]["message"].startswith(says), value
        assert "secret" not in response.text
    assert not files.READ


@pytest.mark.parametrize("value", [7, True, ["/etc/passwd"], {"picture": "/etc/passwd"}, {"path": "/etc/passwd"}, [[]]])
def test_a_file_is_nothing_else(client, value):
    files.READ.clear()
    response = sent(client, value)
    assert response.status_code == 400 and not files.READ
    assert response.json()["error"]["message"].startswith("the request: sound: expected ")


def test_a_path_in_the_fields_of_a_chat_is_refused(client):
    body = {"model": "served/both", "messages": [{"role": "user", "content": "/etc/passwd"}]}
    message = client.post("/v1/chat/completions", json=body).json()["error"]["message"]
    assert message == "messages: the model has 0 inputs for a text; leave the text out"
    body = {"model": "served/both", "messages": [{"role": "user", "content": ""}], "inputs": {"sound": "/etc/passwd"}}
    assert "expected base64" in client.post("/v1/chat/completions", json=body).json()["error"]["message"]
    assert client.post("/v1/chat/completions", json={**body, "inputs": {"sound": ENCODED}}).status_code == 200


def test_a_string_stays_a_key_or_a_path_in_python(listener):
    files.READ.clear()
    assert "No such file or directory: 'gone.wav'" in refusal(listener.ask, {"sound": "gone.wav"})
    assert files.READ == ["gone.wav"]


def test_an_input_that_does_not_say_what_it_takes_is_not_served():
    with pytest.raises(PluginError) as error, served.client(files.predictor(files.Undeclared)):
        pass
    assert str(error.value) == "input 'sound' cannot be served: the config of type 'undeclared' must set `takes`"
