"""Bodies of requests, JSON or forms, to queries.

No value of a client is taken for a path, a key or an address: pictures and files are bytes.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import PureWindowsPath
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from starlette.datastructures import FormData, UploadFile

from mmgen.errors import DataError
from mmgen.examples import All
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import PICTURE, Query
from mmgen.parts import File

DATA_URL = re.compile(r"data:[\w/+.-]*(;[\w.-]+=[\w.-]*)*;base64,", re.IGNORECASE)
MOST_BYTES, MOST_PARTS = 20 * 2**20, 32  # of a body; fields and files of a form
MOST_PICTURES, MOST_LETTERS, MOST_TEXTS = 4, 10_000, 20  # of a request
ADVICE = 'add "{name}" to "inputs", or a field "{name}" to a form'


class Predict(BaseModel):
    """The body of /v1/predict."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: str | None = Field(None, description="the id of the model; by default the one that is served")
    picture: Any = Field(None, description="base64 of a picture, for the only input that takes pictures")
    inputs: dict[str, Any] = Field({}, description="values by input name; pictures and files as base64, or a data: URL")


class Ask(Predict):
    """The body of /v1/ask."""

    n: int | None = Field(None, ge=1, le=MOST_TEXTS, description="number of different texts; by default 1")
    decoding: dict[str, Any] = Field({}, description="decoding options by name, such as num_beams")
    seed: int | None = Field(None, ge=0, lt=2**63, description="of a decoding that samples")
    attention: bool = Field(False, description="return where each word of the texts looked")


class Message(BaseModel):
    """A message of a chat; `content`: a text, or parts: texts and pictures as data: URLs."""

    role: str
    content: str | list[dict[str, Any]]


class Chat(BaseModel):
    """The body of /v1/chat/completions. Other fields of OpenAI's interface are ignored."""

    model: str = Field(description="the id of the model, as /v1/models lists it")
    messages: list[Message] = Field(description="one message of the user")
    n: int | None = Field(None, ge=1, le=MOST_TEXTS, description="number of different texts, as choices")
    temperature: float | None = Field(None, ge=0, le=2, description="over 0: texts are sampled")
    top_p: float | None = Field(None, gt=0, le=1, description="sample among the most probable tokens")
    seed: int | None = Field(None, ge=0, lt=2**63)
    stream: bool | None = None
    inputs: dict[str, Any] = Field({}, description="values by input name, beside the message")
    decoding: dict[str, Any] = Field({}, description="decoding options by name")

    def as_ask(self, predictor: Predictor) -> Ask:
        """The request in mmgen's own form. The message's text is for the only input of text that `inputs` does not
        name. Raises DataError."""
        if len(self.messages) != 1 or self.messages[0].role != "user":
            raise DataError("messages: the model reads one message of the user, and remembers none; send only that")
        content = self.messages[0].content
        text_alone: list[dict[str, Any]] = [{"type": "text", "text": content}]
        parts = text_alone if isinstance(content, str) else content
        texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
        pictures = [part["image_url"] for part in parts if isinstance(part.get("image_url"), dict)]
        if len(texts) + len(pictures) < len(parts):
            raise DataError('messages: parts are {"type": "text"} and {"type": "image_url"}')
        names, inputs = predictor.names, dict(self.inputs)
        readers = [name for name in names.required if names.takes[name] == "text" and name not in inputs]
        if text := "\n".join(texts).strip():
            if len(readers) != 1:
                which = f"'inputs' names them: {', '.join(readers)}" if readers else "leave the text out"
                raise DataError(f"messages: the model has {len(readers)} inputs for a text; {which}")
            inputs[readers[0]] = text
        urls = [str(picture.get("url", "")) for picture in pictures]
        picture = urls if len(urls) > 1 else urls[0] if urls else None
        return Ask(inputs=inputs, picture=picture, n=self.n, seed=self.seed, decoding=self._decoding(predictor))

    def _decoding(self, predictor: Predictor) -> dict[str, Any]:
        """The decoding options; a temperature or top_p draws texts, whatever beams the recipe has."""
        if not self.temperature and (self.temperature == 0 or self.top_p in (None, 1.0)):
            return self.decoding
        drawn = {"temperature": self.temperature, "top_p": self.top_p, "do_sample": True, "num_beams": 1}
        known = type(predictor.recipe.decoding).model_fields
        return {name: value for name, value in drawn.items() if value is not None and name in known} | self.decoding


Body = TypeVar("Body", Predict, Ask, Chat)


async def read_body(request: Request, cls: type[Body]) -> Body:
    """The body of a request: a form, or JSON. Raises DataError with the first mistake."""
    try:
        if request.headers.get("content-type", "").lower().startswith("multipart/form-data"):
            async with request.form(max_files=MOST_PARTS, max_fields=MOST_PARTS, max_part_size=MOST_BYTES) as form:
                return cls.model_validate(await _fields(form, cls))
        return cls.model_validate_json(await request.body())
    except ValidationError as error:
        mistake = error.errors(include_url=False)[0]
        place = ".".join(map(str, mistake["loc"]))
        raise DataError(f"{place}: {mistake['msg']}" if place else f"the body: {mistake['msg']}") from None


async def _fields(form: FormData, cls: type[BaseModel]) -> dict[str, Any]:
    """The fields of a form under the keys of `cls`; other fields are inputs. Raises DataError."""
    body: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for name in dict.fromkeys(form):
        values = [await _value(value) for value in form.getlist(name)]
        value = values if len(values) > 1 else values[0]
        if name in cls.model_fields and name not in ("model", PICTURE) and isinstance(value, str):
            try:
                value = json.loads(value)
            except (ValueError, RecursionError):
                raise DataError(f"{name}: must be JSON in a form, not {value!r:.60}") from None
        (body if name in cls.model_fields else inputs)[name] = value
    return {**body, "inputs": {**body.get("inputs", {}), **inputs}} if inputs else body


async def _value(value: str | UploadFile) -> str | File:
    """A text, or a file, named without the folders that its client may give."""
    if isinstance(value, str):
        return value
    return File(PureWindowsPath(value.filename or "").name or "the file", await value.read())


def query_of(body: Predict, predictor: Predictor) -> Query:
    """The query of a request, with pictures and files decoded from base64. Raises DataError."""
    names = predictor.names
    values: dict[str, Any] = {}
    pictures: list[bytes] = []
    texts: list[Any] = []  # of inputs, and of labels such as prompts
    for name, value in body.inputs.items():
        takes, place = names.takes.get(name), f"inputs.{name}"
        if takes == "picture":
            values[name] = _decode_pictures(value, place, pictures)
        elif takes == "file":
            values[name] = value if isinstance(value, File) else File("the file", decode(value, place))
        else:
            values[name] = value
            texts.append(value)
    if body.picture is not None:
        if not names.pictures:
            raise DataError(f"picture: the model reads {names.reads}, and no picture; leave it out")
        values[PICTURE] = _decode_pictures(body.picture, PICTURE, pictures)
    if len(pictures) > MOST_PICTURES:
        raise DataError(f"the request has {len(pictures)} pictures; the limit is {MOST_PICTURES}")
    if (letters := len(json.dumps(texts, default=str))) > MOST_LETTERS:
        raise DataError(f"inputs: the texts have {letters:,} characters; the limit is {MOST_LETTERS:,}")
    query = Query("the request", values, folder=None)
    names.bind_exactly(query)
    return query


def _decode_pictures(value: Any, place: str, pictures: list[bytes]) -> Any:
    """The value of an input for pictures, with base64 decoded; adds the bytes of its pictures to `pictures`."""
    if isinstance(value, list) and value:
        return All(tuple(_decode_pictures(element, place, pictures) for element in value))
    if isinstance(value, dict) and PICTURE in value:
        return {**value, PICTURE: _decode_pictures(value[PICTURE], f"{place}.{PICTURE}", pictures)}
    content = value.content if isinstance(value, File) else decode(value, place)
    assert isinstance(content, bytes)  # of an upload
    pictures.append(content)
    return content


def decode(text: Any, place: str) -> bytes:
    """The bytes of a file in base64, or in a data: URL. Raises DataError, for an address above all: nothing is
    fetched."""
    if isinstance(text, str) and (match := DATA_URL.match(text)):
        text = text[match.end() :]
    elif isinstance(text, str) and "://" in text[:64]:
        raise DataError(f"{place}: must be a data: URL with base64; addresses are never fetched")
    try:
        if content := base64.b64decode(text, validate=True):
            return content
    except (TypeError, ValueError):
        pass
    raise DataError(f"{place}: not valid base64; encode the bytes of the file")
