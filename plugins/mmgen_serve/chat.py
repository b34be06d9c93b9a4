"""Chat completions in the shape of OpenAI's interface: requests to queries, answers to completions and events.

A request is one message of the user: its pictures as data: URLs, and its text for the model's only input of text. With
several inputs of text, `inputs` beside the messages names them. What the model cannot do is refused, never ignored.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field, field_validator

from mmgen.inference.predictor import Predictor
from mmgen.settings import Config

from .engine import Reply
from .limits import Limits
from .refusals import Refusal
from .requests import LARGEST_SEED, Ask, decode

NEUTRAL: Mapping[str, tuple[Any, ...]] = {  # fields that clients send, and the values with which they change nothing
    "frequency_penalty": (0, None),
    "presence_penalty": (0, None),
    "logprobs": (False, None),
    "top_logprobs": (None,),
    "logit_bias": ({}, None),
    "stop": ([], None),
    "tools": ([], None),
    "tool_choice": ("none", "auto", None),
    "response_format": ({"type": "text"}, None),
}
IGNORED = ("user", "metadata", "store", "service_tier", "safety_identifier")  # of no effect on texts
DRAWN = ("temperature", "top_p")


class Message(Config):
    """One message of a chat."""

    role: Literal["user", "system", "developer", "assistant", "tool"]
    content: str | list[dict[str, Any]] = Field(description="a text, or parts: texts and pictures as data: URLs")
    name: str | None = None

    @field_validator("content", mode="before")
    @classmethod
    def _text_or_parts(cls, content: Any) -> Any:
        if isinstance(content, str) or isinstance(content, list) and all(isinstance(part, dict) for part in content):
            return content
        raise ValueError('must be a text, or a list of parts such as {"type": "text", "text": "two red tents"}')


class Chat(Config):
    """The body of /v1/chat/completions."""

    model: str = Field(description="the id of the model, as /v1/models lists it")
    messages: list[Message] = Field(min_length=1, description="one message of the user")
    n: int | None = Field(None, ge=1, description="number of different texts, as choices")
    temperature: float | None = Field(None, ge=0, le=2, description="over 0: texts are sampled")
    top_p: float | None = Field(None, gt=0, le=1, description="sample among the most probable tokens")
    seed: int | None = Field(None, ge=0, le=LARGEST_SEED)
    max_tokens: int | None = Field(None, ge=1)
    max_completion_tokens: int | None = Field(None, ge=1)
    stream: bool | None = None
    stream_options: dict[str, Any] | None = None
    inputs: dict[str, Any] = Field({}, description="values by input name, beside the message")
    decoding: dict[str, Any] = Field({}, description="decoding options by name")


def without_neutral(body: Mapping[str, Any]) -> dict[str, Any]:
    """The body without fields that change nothing. Raises Refusal for one of them with another value."""
    for name, values in NEUTRAL.items():
        if name in body and body[name] not in values:
            raise Refusal(400, f"{name}: this model has no such option; leave it out", name)
    return {name: value for name, value in body.items() if name not in (*NEUTRAL, *IGNORED)}


def to_ask(chat: Chat, predictor: Predictor, limits: Limits) -> Ask:
    """The request of a chat in mmgen's own form. Raises Refusal."""
    if len(chat.messages) != 1 or chat.messages[0].role != "user":
        raise Refusal(
            400, "messages: the model reads one message of the user, and remembers none; send only that", "messages"
        )
    texts, pictures = _texts_and_pictures(chat.messages[0].content)
    if len(pictures) > limits.pictures:
        raise Refusal(400, f"messages: {len(pictures)} pictures; the limit is {limits.pictures}", "messages")
    inputs = dict(chat.inputs)
    names = predictor.names
    readers = [name for name in names.required if names.takes[name] == "text" and name not in inputs]
    if text := "\n".join(texts).strip():
        if len(readers) != 1:
            which = f"'inputs' names them: {', '.join(readers)}" if readers else "leave the text out"
            raise Refusal(400, f"messages: the model has {len(readers)} inputs for a text; {which}", "messages")
        inputs[readers[0]] = text
    most = predictor.model.generator.max_tokens
    for name in ("max_tokens", "max_completion_tokens"):
        if (limit := getattr(chat, name)) is not None and limit < most:
            raise Refusal(400, f"{name}: the model writes at most {most} tokens and is not cut; leave it out", name)
    picture = None if not pictures else pictures[0] if len(pictures) == 1 else pictures
    options = {**_sampling_options(chat, predictor), **chat.decoding}
    return Ask(model=chat.model, picture=picture, inputs=inputs, n=chat.n, decoding=options, seed=chat.seed)


def _texts_and_pictures(content: str | list[dict[str, Any]]) -> tuple[list[str], list[bytes]]:
    """The texts and the pictures of a message."""
    texts: list[str] = []
    pictures: list[bytes] = []
    for part in [{"type": "text", "text": content}] if isinstance(content, str) else content:
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            texts.append(part["text"])
        elif part.get("type") == "image_url" and isinstance(address := part.get("image_url"), dict):
            url = address.get("url")
            pictures.append(decode(url if isinstance(url, str) else "", "messages.image_url"))
        else:
            raise Refusal(400, 'messages: parts are {"type": "text"} and {"type": "image_url"}', "messages")
    return texts, pictures


def _sampling_options(chat: Chat, predictor: Predictor) -> dict[str, Any]:
    """The decoding options of temperature and top_p; none without them, or with temperature 0."""
    if not chat.temperature and chat.top_p in (None, 1.0) or chat.temperature == 0:
        return {}
    fields = type(predictor.recipe.decoding).model_fields
    options = {name: value for name in DRAWN if (value := getattr(chat, name)) is not None}
    if unknown := [name for name in options if name not in fields]:
        raise Refusal(400, f"{unknown[0]}: this model's decoding has no such option; leave it out", unknown[0])
    drawn = {"do_sample": True, "num_beams": 1}  # texts are drawn independently, whatever beams the recipe has
    return options | {name: value for name, value in drawn.items() if name in fields}


def completion(reply: Reply, slots: int, model: str, end_id: int) -> dict[str, Any]:
    """The response of a chat. `slots`: about how many the encoded input takes."""
    texts = reply.answer.texts
    written = sum(len(text.tokens) for text in texts)
    return {
        "id": f"chatcmpl-{uuid.uuid4().hex}",
        "object": "chat.completion",
        "created": int(time.time()),
        "model": model,
        "choices": [
            {
                "index": index,
                "message": {"role": "assistant", "content": text.text, "refusal": None},
                "finish_reason": "stop" if text.tokens and text.tokens[-1] == end_id else "length",
                "logprobs": None,
            }
            for index, text in enumerate(texts)
        ],
        "usage": {
            "prompt_tokens": slots,
            "completion_tokens": written,
            "total_tokens": slots + written,
        },
    }


def events(done: Mapping[str, Any]) -> str:
    """A response as server-sent events: one with all texts, and the end."""
    choices = [
        {"index": choice["index"], "delta": choice["message"], "finish_reason": choice["finish_reason"]}
        for choice in done["choices"]
    ]
    chunk = {**done, "object": "chat.completion.chunk", "choices": choices}
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"
