"""Inputs that read files: clients send bytes with a name, and none of their strings becomes a path."""

import base64
import os
from collections import Counter
from pathlib import Path
from typing import Literal

import pytest
import torch
from kit import served
from kit.refusals import refusal
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_scenes import Scenes

import mmgen
from mmgen.errors import PluginError
from mmgen.inference.predictor import Predictor
from mmgen.model import compose
from mmgen.parts import Embedder, File, Reader
from mmgen.recipe.tables import Recipe, Step
from mmgen.tensors import Segment
from mmgen.testing import TEXTS

# --- an input that reads files, as a plugin would have it -------------------------------------------------------------


READ: list[object] = []  # the values that readers met


class Bytes(mmgen.EmbedderConfig):
    """The numbers of a file's bytes, through one linear layer."""

    takes = "file"

    type: Literal["bytes"] = "bytes"

    def build(self, backbone):
        return BytesEmbedder(self.fields[0], backbone)


class Undeclared(Bytes):
    """As an input of a plugin that does not say what it takes."""

    takes = None
    type: Literal["undeclared"] = "undeclared"


class BytesReader(Reader):
    """In the data, a value is a path."""

    def __init__(self, field):
        self.field = field

    def read(self, example):
        value = example.inputs[self.field]
        READ.append(value)
        with value.open() if isinstance(value, File) else Path(value).open("rb") as file:
            counts = Counter(file.read())
        return torch.tensor([[float(counts[byte]) for byte in range(256)]])

    def collate(self, items):
        return {"counts": torch.stack(items)}


class BytesEmbedder(Embedder):
    def __init__(self, field, backbone):
        super().__init__()
        self.reader, self.dense = BytesReader(field), torch.nn.Linear(256, backbone.input_size)

    def forward(self, counts):
        return Segment(self.dense(counts), torch.ones(counts.shape[:2], dtype=torch.bool))


def predictor(config: type[mmgen.EmbedderConfig] = Bytes) -> Predictor:
    """The predictor of a step that reads a file as 'sound', with random weights."""
    inputs = {"sound": config(fields=("sound",))}
    backbone = Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2)
    steps = {"all": Step(inputs=("sound",), train=("sound",))}
    recipe = Recipe(
        name="files", backbone=backbone, inputs=inputs, generator=Masked(max_tokens=6), steps=steps, data=Scenes()
    )
    torch.manual_seed(0)
    return Predictor(compose(backbone, inputs, recipe.generator, texts=TEXTS), recipe, "all")


# --- tests ------------------------------------------------------------------------------------------------------------


CONTENT = b"RIFF of a sound"
ENCODED = base64.b64encode(CONTENT).decode()


@pytest.fixture(scope="module")
def listener():
    return predictor()


@pytest.fixture(scope="module")
def client(listener):
    with served.client(listener) as opened:
        yield opened


def sent(client, value):
    return client.post("/v1/ask", json={"inputs": {"sound": value}})


def test_a_file_arrives_as_bytes(client, listener, tmp_path):
    (tmp_path / "a.wav").write_bytes(CONTENT)
    READ.clear()
    listener.warm()
    assert not READ  # it knows no file to try
    (text,) = listener.ask({"sound": tmp_path / "a.wav"}).texts
    expected = {"text": text.text, "score": round(text.score, 4)}
    READ.clear()
    url = sent(client, f"data:audio/wav;codecs=1;base64,{ENCODED}")
    for response in (sent(client, ENCODED), url):
        assert response.status_code == 200 and response.json()["texts"] == [expected], response.text
    assert len(READ) == 2 and all(isinstance(file, File) and file.content == CONTENT for file in READ)
    assert client.get("/v1/models").json()["data"][0]["mmgen"]["inputs"] == {"sound": "file"}


def test_a_string_of_a_client_is_never_a_path(client, tmp_path):
    own = tmp_path / "abcd"
    own.write_bytes(b"secret")
    READ.clear()
    paths = ("/etc/passwd", "file:///etc/passwd", str(own), f"file://{own}", "../../../../etc/passwd", "~/.profile")
    for value in (*paths, os.path.relpath(own), "http://x.org/a.wav", "data:,a", "data:text/plain,/etc/passwd", ""):
        response = sent(client, value)
        says = "the request: sound: expected base64 of a file"
        assert response.status_code == 400 and response.json()["error"]["message"].startswith(says), value
        assert "secret" not in response.text
    assert not READ


@pytest.mark.parametrize("value", [7, True, ["/etc/passwd"], {"picture": "/etc/passwd"}, {"path": "/etc/passwd"}, [[]]])
def test_a_file_is_nothing_else(client, value):
    READ.clear()
    response = sent(client, value)
    assert response.status_code == 400 and not READ
    assert response.json()["error"]["message"].startswith("the request: sound: expected ")


def test_a_path_in_the_fields_of_a_chat_is_refused(client):
    body = {"model": "served/both", "messages": [{"role": "user", "content": "/etc/passwd"}]}
    message = client.post("/v1/chat/completions", json=body).json()["error"]["message"]
    assert message == "messages: the model has 0 inputs for a text; leave the text out"
    body = {"model": "served/both", "messages": [{"role": "user", "content": ""}], "inputs": {"sound": "/etc/passwd"}}
    assert "expected base64" in client.post("/v1/chat/completions", json=body).json()["error"]["message"]
    assert client.post("/v1/chat/completions", json={**body, "inputs": {"sound": ENCODED}}).status_code == 200


def test_a_string_stays_a_key_or_a_path_in_python(listener):
    READ.clear()
    assert "No such file or directory: 'gone.wav'" in refusal(listener.ask, {"sound": "gone.wav"})
    assert READ == ["gone.wav"]


def test_an_input_that_does_not_say_what_it_takes_is_not_served():
    with pytest.raises(PluginError) as error, served.client(predictor(Undeclared)):
        pass
    assert str(error.value) == "input 'sound' cannot be served: the config of type 'undeclared' must set `takes`"
