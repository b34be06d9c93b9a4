"""The OpenAPI description of a served model, with an example of every request."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from io import BytesIO
from typing import Any

from PIL import Image

from mmgen import __version__
from mmgen.inference.predictor import Predictor

from .chat import Chat
from .requests import Ask, Predict

PHRASE = "a dog"
ERROR = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}


def description(predictor: Predictor, model: str, labels: Sequence[str] = ()) -> dict[str, Any]:
    """The description, in OpenAPI 3.1. Its examples can be sent as they stand. `labels`: those that a query must
    give."""
    names = predictor.names
    inputs: dict[str, Any] = {}
    a_file = base64.b64encode(b"the bytes of a file").decode()
    examples = {"picture": example_picture(), "file": a_file, "text": f"{PHRASE} on a beach"}
    for name in names.required:
        fields = names.inputs[name].fields
        inputs |= dict.fromkeys((name,) if len(fields) == 1 else fields, examples[names.takes[name] or "text"])
    inputs |= dict.fromkeys(labels, [PHRASE, "a cat"] if names.filled else PHRASE)
    paths: dict[str, Any] = {}
    if predictor.kind == "text":
        content: list[dict[str, Any]] = [
            {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{inputs[name]}"}}
            for name in names.pictures
        ]
        texts = {name: value for name, value in inputs.items() if name not in names.pictures}
        chat = {"model": model, "messages": [{"role": "user", "content": content}], "inputs": texts}
        paths["/v1/ask"] = _post_operation("Write texts.", Ask, {"inputs": inputs, "attention": False}, form=True)
        paths["/v1/chat/completions"] = _post_operation("Write texts, in the shape of OpenAI's interface.", Chat, chat)
    else:
        paths["/v1/predict"] = _post_operation(f"Predict: {predictor.kind}.", Predict, {"inputs": inputs}, form=True)
    for path, summary in (
        ("/v1/models", "The model, its inputs and its decoding."),
        ("/health", "Whether the service answers."),
        ("/metrics", "Counts in the format of Prometheus."),
    ):
        paths[path] = {"get": {"summary": summary, "responses": {"200": {"description": "as above"}}}}
    info = {"title": f"mmgen: {model}", "version": __version__}
    return {"openapi": "3.1.0", "info": info, "paths": paths}


def _post_operation(
    summary: str, cls: type[Predict] | type[Chat], example: dict[str, Any], form: bool = False
) -> dict[str, Any]:
    schema = cls.model_json_schema()
    content = {"application/json": {"schema": schema, "example": example}}
    if form:
        content["multipart/form-data"] = {"schema": schema}
    responses = {
        "200": {"description": "the answer", "content": {"application/json": {}}},
        "4XX": {"description": "what is wrong, and what to do", "content": {"application/json": {"schema": ERROR}}},
        "5XX": {"description": "try again later", "content": {"application/json": {"schema": ERROR}}},
    }
    return {"post": {"summary": summary, "requestBody": {"required": True, "content": content}, "responses": responses}}


def example_picture() -> str:
    """A small picture, in base64."""
    file = BytesIO()
    Image.linear_gradient("L").resize((64, 64)).convert("RGB").save(file, "PNG")
    return base64.b64encode(file.getvalue()).decode()
