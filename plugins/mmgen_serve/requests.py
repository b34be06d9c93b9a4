"""Bodies of requests (JSON or forms), checked, to queries, pictures, files and decoding options.

No value of a client is taken for a path, a key or an address: pictures and files are bytes.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterator, Mapping
from io import BytesIO
from pathlib import PureWindowsPath
from typing import Any, TypeVar

from pydantic import Field, ValidationError
from starlette.datastructures import FormData, UploadFile

from mmgen.decoding import DecodingConfig
from mmgen.errors import DataError, RecipeError
from mmgen.examples import All
from mmgen.features.images import image_size
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import Query
from mmgen.parts import File
from mmgen.recipe.messages import describe_mistake
from mmgen.settings import Config

from .limits import Limits
from .refusals import Refusal

DATA_URL = re.compile(r"data:[\w/+.-]*(;[\w.-]+=[\w.-]*)*;base64,", re.IGNORECASE)
PICTURE = "picture"
LARGEST_SEED = 2**63 - 1
ADVICE = 'add "{name}" to "inputs", or a field "{name}" to a form'
Body = TypeVar("Body", bound=Config)


class Predict(Config):
    """The body of /v1/predict."""

    model: str | None = Field(None, description="the id of the model; by default the one that is served")
    picture: Any = Field(None, description="base64 of a picture, for the only input that takes pictures")
    inputs: dict[str, Any] = Field({}, description="values by input name; pictures and files as base64, or a data: URL")


class Ask(Predict):
    """The body of /v1/ask."""

    n: int | None = Field(None, ge=1, description="number of different texts; by default 1")
    decoding: dict[str, Any] = Field({}, description="decoding options by name, such as num_beams")
    seed: int | None = Field(None, ge=0, le=LARGEST_SEED, description="of a decoding that samples")
    attention: bool = Field(False, description="return where each word of the texts looked")


def parse_json(body: bytes, limits: Limits) -> dict[str, Any]:
    """A JSON object. Raises Refusal."""
    try:
        value = _parse_json(body, limits)
    except ValueError as error:
        place = f" (line {error.lineno}, column {error.colno})" if isinstance(error, json.JSONDecodeError) else ""
        raise Refusal(400, f"the body is not valid JSON{place}; send a JSON object in UTF-8") from None
    if not isinstance(value, dict):
        raise Refusal(400, f"the body is {json.dumps(value)[:40]}; send a JSON object")
    return value


def _parse_json(text: bytes, limits: Limits, name: str | None = None) -> Any:
    """The value of a JSON text, whose values are counted before it is parsed. `name`: the field that it is. Raises
    Refusal, and ValueError."""
    place = f"{name}: " if name else ""
    if sum(map(text.count, (b",", b"[", b"{"))) > limits.values:
        raise Refusal(400, f"{place}the JSON has more than {limits.values:,} values; send less", name)
    try:
        value = json.loads(text, parse_constant=_refuse_constant)
    except RecursionError:
        raise Refusal(400, f"{place}the JSON has more than {limits.depth} nested levels; send less", name) from None
    return _refuse_deep(value, limits, name)


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _refuse_deep(value: Any, limits: Limits, name: str | None = None) -> Any:
    """The value of a JSON text. Raises Refusal if it has too many nested levels. `name`: the field that it is."""
    level, depth = [value], 0
    while level and depth <= limits.depth:
        inner = [item for item in level if isinstance(item, dict | list)]
        depth += bool(inner)
        level = [item for items in inner for item in (items.values() if isinstance(items, dict) else items)]
    if depth > limits.depth:
        place = f"{name}: " if name else ""
        raise Refusal(400, f"{place}the JSON has more than {limits.depth} nested levels; send less", name)
    return value


async def parse_form(form: FormData, cls: type[Config], limits: Limits) -> dict[str, Any]:
    """The fields of a form under the keys of `cls`; other fields are inputs. Raises Refusal."""
    body: dict[str, Any] = {}
    inputs: dict[str, Any] = {}
    for name in dict.fromkeys(form):
        values = [await _form_value(value) for value in form.getlist(name)]
        if len(values) > 1 and not all(isinstance(value, File) for value in values):
            raise Refusal(400, f"the form has '{name}' {len(values)} times; only pictures may be repeated", name)
        value: Any = values if len(values) > 1 else values[0]
        if name in ("inputs", "decoding") and isinstance(value, str):
            value = _json_field(name, value, limits)
        elif name in ("n", "seed") and isinstance(value, str) and re.fullmatch(r"-?\d{1,20}", value):
            value = int(value)
        elif name == "attention":
            value = {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower(), value)
        (body if name in cls.model_fields else inputs)[name] = value
    if inputs:
        by_key = body.get("inputs", {})
        body["inputs"] = {**by_key, **inputs} if isinstance(by_key, dict) else by_key
    return body


async def _form_value(value: str | UploadFile) -> str | File:
    """A text, or a file, named without the folders that its client may give."""
    if isinstance(value, str):
        return value
    return File(PureWindowsPath(value.filename or "").name or "the file", await value.read())


def _json_field(name: str, text: str, limits: Limits) -> Any:
    try:
        return _parse_json(text.encode(), limits, name)
    except ValueError:
        raise Refusal(400, f"{name}: not valid JSON; send an object such as {{}}", name) from None


def validated(cls: type[Body], body: Mapping[str, Any]) -> Body:
    """The body as a `cls`. Raises Refusal with the first wrong field."""
    try:
        return cls.model_validate(dict(body), strict=True)
    except ValidationError as error:
        mistake = error.errors()[0]
        _, text = describe_mistake(cls, mistake)
        name = _place_of_mistake(body, mistake["loc"])
        raise Refusal(400, f"{name}: {text}", name) from None


def _place_of_mistake(body: Any, path: tuple[int | str, ...]) -> str:
    """The place of a mistake in a body, such as messages[0].content, from the path of pydantic, whose last parts may
    name types."""
    place = ""
    for part in path:
        if not isinstance(body, dict | list):
            break
        place += f"[{part}]" if isinstance(part, int) else f".{part}" if place else part
        body = body[part] if isinstance(body, list) and isinstance(part, int) else dict(body).get(part)
    return place


def decoding_of(ask: Ask, predictor: Predictor, limits: Limits) -> DecodingConfig:
    """The decoding of a request: the predictor's own with the values of the request. Raises Refusal."""
    most = limits.texts
    if ask.n is not None and ask.n > most:
        raise Refusal(400, f"n: must be at most {most}, not {str(ask.n):.60}", "n")
    try:
        options = predictor.decoding(ask.n, ask.decoding)
    except (DataError, RecipeError) as error:
        raise Refusal(400, f"decoding: {error}", "decoding") from None
    for name in ask.decoding:
        value = getattr(options, name)  # as it was read: a string may hold a number
        if isinstance(value, int | float) and abs(value) > most:
            raise Refusal(400, f"decoding.{name}: must be at most {most}", f"decoding.{name}")
    return options


def query_of(request: Predict, predictor: Predictor, limits: Limits) -> Query:
    """The query of a request: pictures and files decoded from base64, names and sizes checked. Raises Refusal."""
    names = predictor.names
    values: dict[str, Any] = {}
    pictures: list[bytes] = []
    texts: list[str] = []
    for name, value in request.inputs.items():
        place, takes = f"inputs.{name}", names.takes.get(name)
        if takes == "picture":
            values[name] = _decode_pictures(value, place, pictures)
        elif takes == "file":
            values[name] = _decode_file(value, place)
        else:
            values[name] = value
            texts += _strings_in(value, place)
    picture = None if request.picture is None else _decode_pictures(request.picture, PICTURE, pictures)
    if picture is not None and not names.pictures:
        raise Refusal(400, f"picture: the model reads {names.reads}, and no picture; leave it out", PICTURE)
    if len(pictures) > limits.pictures:
        raise Refusal(400, f"the request has {len(pictures)} pictures; the limit is {limits.pictures}")
    for content in pictures:
        _check_size(content, limits)
    letters = sum(max(1, len(text)) for text in texts)  # empty texts cost something too
    if letters > limits.text:
        raise Refusal(400, f"inputs: the texts have {letters:,} characters; the limit is {limits.text:,}", "inputs")
    values |= {} if picture is None else {PICTURE: picture}
    query = Query("the request", values, folder=None)
    try:
        names.bind_exactly(query)
    except DataError as error:
        raise Refusal(400, str(error), "inputs") from None
    return query


def _decode_pictures(value: Any, place: str, pictures: list[bytes]) -> Any:
    """The value of an input for pictures, with base64 decoded; adds the bytes of its pictures to `pictures`."""
    if isinstance(value, File):
        value = value.content
    if isinstance(value, str):
        value = decode(value, place)
    if isinstance(value, bytes):
        pictures.append(value)
        return value
    if isinstance(value, list) and value and not any(isinstance(element, list) for element in value):
        return All(tuple(_decode_pictures(element, place, pictures) for element in value))
    if isinstance(value, dict) and "picture" in value and not _is_nested(value["picture"]):
        return {**value, "picture": _decode_pictures(value["picture"], f"{place}.picture", pictures)}
    raise Refusal(400, f'{place}: must be a picture in base64, or {{"picture": ..., "boxes": [...]}}', place)


def _decode_file(value: Any, place: str) -> File:
    """A file of a form, or in base64. Raises Refusal."""
    if isinstance(value, File):
        return value
    if isinstance(value, str):
        return File("the file", decode(value, place))
    raise Refusal(400, f"{place}: must be one file, in base64 or as a file of a form", place)


def _is_nested(picture: Any) -> bool:
    """Whether a picture that stands beside boxes is an object, or a list of some, with boxes of its own."""
    return any(isinstance(element, dict) for element in (picture if isinstance(picture, list) else [picture]))


def decode(text: str, place: str) -> bytes:
    """The bytes of a file in base64, or in a data: URL. Raises Refusal, for an address above all: nothing is
    fetched."""
    if match := DATA_URL.match(text):
        text = text[match.end() :]
    elif "://" in text[:64] or text[:5].lower() == "data:":
        raise Refusal(400, f"{place}: must be a data: URL with base64; addresses are never fetched", place)
    try:
        content = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(400, f"{place}: not valid base64; encode the bytes of the file", place) from None
    if not content:
        raise Refusal(400, f"{place}: is empty; encode the bytes of the file", place)
    return content


def _check_size(content: bytes, limits: Limits) -> None:
    """Raises Refusal for a picture of too many pixels, by its header. Unreadable pictures are refused later."""
    size = image_size(BytesIO(content))
    if size is not None and size[0] * size[1] > limits.pixels:
        raise Refusal(400, f"a picture has more than {limits.pixels:,} pixels; send a smaller one")


def _strings_in(value: Any, place: str) -> Iterator[str]:
    """The strings in a value and its nested lists and objects. Raises Refusal for a file."""
    if isinstance(value, File):
        raise Refusal(400, f"{place}: must be a text, not a file", place)
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for element in value.values() if isinstance(value, dict) else value:
            yield from _strings_in(element, place)
