"""Fuzzing of the service: bodies of requests in JSON and as forms, read as the service reads them, and whole requests
through the application."""

from __future__ import annotations

import asyncio
import base64
import binascii
import functools
import json
import logging
import re
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

from kit import served

from mmgen.errors import DataError

from . import mutations
from .harness import Surface

MODEL = "served/both"
PICTURE = served.picture()
ENCODED = base64.b64encode(PICTURE).decode()
URL = f"data:image/png;base64,{ENCODED}"
ASK = {"inputs": {"image": ENCODED, "caption": "a red dog"}, "n": 2, "attention": False}
CHAT = {
    "model": MODEL,
    "messages": [
        {
            "role": "user",
            "content": [{"type": "image_url", "image_url": {"url": URL}}, {"type": "text", "text": "a red dog"}],
        }
    ],
    "n": 1,
    "max_tokens": 100,
    "temperature": 0.0,
}
BODIES: list[tuple[str, Mapping[str, Any]]] = [
    ("/v1/ask", ASK),
    ("/v1/ask", {"picture": URL, "inputs": {"caption": "a red dog"}, "decoding": {"num_beams": 2}}),
    ("/v1/ask", {"inputs": {"image": {"picture": ENCODED, "boxes": [[0, 0, 1, 0.5]]}, "caption": "a"}, "seed": 7}),
    ("/v1/ask", {**ASK, "decoding": {"do_sample": True, "temperature": 2.0}, "seed": 7}),
    ("/v1/chat/completions", CHAT),
    (
        "/v1/chat/completions",
        {**CHAT, "messages": [{"role": "user", "content": "a red dog"}], "inputs": {"image": URL}},
    ),
    ("/v1/predict", {"inputs": {"image": ENCODED, "caption": "a red dog"}}),
]
ODD: list[Any] = [URL, ENCODED, "http://127.0.0.1:1/x.png", "file:///etc/passwd", ENCODED[:-7], 0.5, 7, 21, [URL, URL]]
ADDRESSES = (
    "/v1/ask",
    "/v1/chat/completions",
    "/v1/predict",
    "/v1/models",
    "/health",
    "/metrics",
    "/openapi.json",
    "/x",
)
REFUSING = {400, 403, 404, 405, 413, 421}
BOUNDARY = "x0x"


def surfaces() -> list[Surface]:
    return [
        Surface("request_bodies", _prepare, _spoil, _read, _check, named="."),
        Surface("service", _prepare, _spoil_request, _send, _check_response, named="."),
    ]


@functools.cache
def _predictor() -> Any:
    """The predictor of random weights, once per process; with the folder of its recipe."""
    import tempfile

    folder = tempfile.TemporaryDirectory(prefix="mmgen-fuzz-service-")
    return served.predictor(Path(folder.name)), folder


def _prepare(folder: Path) -> Any:
    from mmgen_serve.app import Service
    from mmgen_serve.limits import Limits

    return {"service": Service(_predictor()[0], MODEL, Limits(queue_time=1000.0), 0.0)}


def _spoil(draw: Random, folder: Path, prepared: Any) -> Path:
    address, body = draw.choice(BODIES)
    text = mutations.json_(draw, body, ODD)
    data = text.encode("utf-8", "surrogatepass")
    prepared |= {"address": address, "body": mutations.bytes_(draw, data) if draw.random() < 0.1 else data}
    path = folder / "body.json"
    path.write_bytes(prepared["body"])
    return path


def _read(path: Path, prepared: Any) -> Any:
    """The query and the decoding of a body, as the handlers of the service make them."""
    from mmgen_serve.chat import Chat, to_ask, without_neutral
    from mmgen_serve.refusals import Refusal
    from mmgen_serve.requests import Ask, Predict, decoding_of, parse_json, query_of, validated

    service = prepared["service"]
    try:
        body = parse_json(prepared["body"], service.limits)
        if prepared["address"].endswith("completions"):
            ask = to_ask(validated(Chat, without_neutral(body)), service.predictor, service.limits)
        else:
            ask = validated(Ask if prepared["address"] == "/v1/ask" else Predict, body)
        query = query_of(ask, service.predictor, service.limits)
        options = decoding_of(ask, service.predictor, service.limits) if isinstance(ask, Ask) else None
    except Refusal as refusal:
        text = json.dumps(refusal.as_json())
        assert 400 <= refusal.status < 500 and "\n" not in refusal.message, text
        raise DataError(text) from None
    return ask, query, options


def _check(path: Path, content: Any, prepared: Any) -> None:
    ask, query, options = content
    body = json.loads(prepared["body"])
    if prepared["address"].endswith("completions"):
        (message,) = body["messages"]
        parts = message["content"]
        parts = [{"type": "text", "text": parts}] if isinstance(parts, str) else parts
        text = "\n".join(part["text"] for part in parts if part["type"] == "text").strip()
        pictures = [part["image_url"]["url"] for part in parts if part["type"] == "image_url"]
        inputs = {**body.get("inputs", {}), **({"caption": text} if text else {})}
        assert len(pictures) < 2 or ask.picture == [_bytes(picture) for picture in pictures]
        picture = pictures[0] if len(pictures) == 1 else None
        assert body.get("n") == ask.n
    else:
        inputs, picture = body.get("inputs", {}), body.get("picture")
        assert getattr(ask, "n", None) == (body.get("n") if hasattr(ask, "n") else None)
    assert {*query.inputs} == {*inputs}, f"{[*query.inputs]} of {[*inputs]}"
    assert query.inputs.get("caption") == inputs.get("caption"), f"caption {query.inputs.get('caption')!r}"
    if isinstance(inputs.get("image"), str):
        assert query.inputs["image"] == _bytes(inputs["image"]), "another picture"
    if isinstance(inputs.get("image"), dict):
        several = isinstance(shown := inputs["image"]["picture"], list)
        pictures = tuple(map(_bytes, shown)) if several else _bytes(shown)
        actual = query.inputs["image"]["picture"]
        assert (actual.values if several else actual) == pictures, "another picture"
        boxes = {name: value for name, value in inputs["image"].items() if name != "picture"}
        assert {**query.inputs["image"], **boxes} == query.inputs["image"], "other boxes"
    assert (query.picture is None) == (picture is None and not isinstance(ask.picture, list)) or picture == []
    if isinstance(picture, str):
        assert query.picture == _bytes(picture), "another picture"
    for name, value in body.get("decoding", {}).items() if options is not None else ():
        setting = getattr(options, name)  # a number may be a text, as in a form
        equal = setting == value or str(setting) == str(value)
        assert equal or (isinstance(setting, float) and setting == float(value)), f"decoding.{name}"
    if options is not None and ask.n is not None:
        assert options.num_return_sequences == ask.n, f"{options.num_return_sequences} texts of {ask.n}"


def _bytes(text: str) -> bytes:
    """The bytes of a picture in base64, in a data: URL or not."""
    text = re.sub(r"^data:[\w/+.-]*;base64,", "", text, flags=re.IGNORECASE)
    assert re.fullmatch(r"[A-Za-z0-9+/]*={0,2}", text), "not base64"
    return binascii.a2b_base64(text)


# --- whole requests ---


def _spoil_request(draw: Random, folder: Path, prepared: Any) -> Path:
    path = _spoil(draw, folder, prepared)
    headers = {"host": "127.0.0.1:8000", "content-type": "application/json"}
    if draw.random() < 0.25:
        prepared["body"], headers["content-type"] = _form(draw)
        prepared["address"] = draw.choice(ADDRESSES[:3])
    if draw.random() < 0.2:
        name = draw.choice(("host", "content-type", "content-length", "origin", "x-request-id", "authorization"))
        headers[name] = draw.choice(
            ("", "x", "-1", "9" * 40, "\u00e9", "multipart/form-data", "http://a", "a b", "../..")
        )
    if draw.random() < 0.1:
        prepared["address"] = draw.choice(ADDRESSES)
    prepared |= {
        "headers": headers,
        "method": "POST" if draw.random() < 0.95 else draw.choice(("GET", "PUT", "HEAD", "X")),
    }
    return path


def _form(draw: Random) -> tuple[bytes, str]:
    """A form, damaged."""
    fields = [
        ("caption", b"a red dog"),
        ("n", b"2"),
        ("inputs", b'{"caption": "a"}'),
        ("decoding", b'{"num_beams": 2}'),
    ]
    parts = [(name, "", value) for name, value in draw.sample(fields, draw.randrange(4))]
    parts += [(draw.choice(("picture", "image", "caption")), 'filename="x.png"', PICTURE)] * draw.choice((1, 1, 2))
    text = b""
    for name, more, value in parts:
        about = f'Content-Disposition: form-data; name="{name}"' + (f"; {more}" if more else "")
        text += f"--{BOUNDARY}\r\n{about}\r\n\r\n".encode() + value + b"\r\n"
    text += f"--{BOUNDARY}--\r\n".encode()
    return mutations.bytes_(draw, text), f"multipart/form-data; boundary={BOUNDARY}"


def _send(path: Path, prepared: Any) -> Any:
    """The response of the application; the engine's threads are those of this process."""
    from mmgen_serve.app import application

    service = prepared["service"]
    if "app" not in prepared:
        logging.getLogger("python_multipart").setLevel(logging.CRITICAL)
        logging.getLogger("mmgen.serve").setLevel(logging.CRITICAL)
        service.engine.start()
        prepared["app"] = application(service)
    sent = [{"type": "http.request", "body": prepared["body"], "more_body": False}]
    answer: dict[str, Any] = {"body": b""}

    async def receive() -> dict[str, Any]:
        if sent:
            return sent.pop()
        await asyncio.sleep(1000)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        answer["status"] = message.get("status", answer.get("status"))
        answer["body"] += message.get("body", b"")

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": prepared["method"],
        "scheme": "http",
        "path": prepared["address"],
        "raw_path": prepared["address"].encode(),
        "query_string": b"",
        "headers": [(name.encode(), value.encode("latin-1")) for name, value in prepared["headers"].items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 8000),
    }
    asyncio.run(prepared["app"](scope, receive, send))
    if answer["status"] in REFUSING and prepared["method"] != "HEAD":
        error = json.loads(answer["body"])["error"]
        assert "\n" not in error["message"] and len(error["message"]) <= 500, f"{error}"
        raise DataError(json.dumps(error))
    return answer


def _check_response(path: Path, content: Any, prepared: Any) -> None:
    """Texts are those that the predictor writes itself."""
    status, body = content["status"], content["body"]
    if prepared["method"] == "HEAD":
        return
    assert status == 200, f"status {status}: {body[:300]!r}"
    is_json = prepared["headers"]["content-type"] == "application/json"
    if not is_json or prepared["address"] not in ("/v1/ask", "/v1/chat/completions") or b"stream" in prepared["body"]:
        return
    ask, query, options = _read(path, prepared)
    _check(path, (ask, query, options), prepared)
    table = json.loads(body)
    if prepared["address"] == "/v1/ask":
        texts = [text["text"] for text in table["texts"]]
    else:
        texts = [choice["message"]["content"] for choice in table["choices"]]
    if not options.samples:
        (answer,) = prepared["service"].predictor.answers([query], options)
        assert texts == [text.text for text in answer.texts], f"{texts} where the predictor writes {answer}"
    assert len(texts) == options.num_return_sequences, f"{len(texts)} texts of {options.num_return_sequences}"
