"""The bodies of requests, and texts in the shape of OpenAI's chat completions."""

from __future__ import annotations

import time
import uuid
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mmgen.errors import DataError
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor
from mmgen.inference.query import PICTURE

MOST_TEXTS, MOST_LETTERS = 20, 10_000  # of a request, of a text


class Inputs(BaseModel):
    """What every request may have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    inputs: dict[str, Any] = Field({}, description="values by input name; pictures and files as base64, or a data: URL")


class Texts(Inputs):
    """The body of /v1/likelihood."""

    texts: list[Annotated[str, Field(max_length=MOST_LETTERS)]] = Field(min_length=1, max_length=MOST_TEXTS)


class Fill(Inputs):
    """The body of /v1/fill."""

    text: str = Field(max_length=MOST_LETTERS, description="a text with [MASK] for each word to fill in")
    top: int = Field(5, ge=1, le=100, description="number of words of each blank, and of fillings")


class Ask(Inputs):
    """The body of /v1/ask and /v1/predict."""

    n: int | None = Field(None, ge=1, le=MOST_TEXTS, description="number of different texts; by default 1")
    decoding: dict[str, Any] = Field({}, description="decoding options by name, such as num_beams")
    seed: int | None = Field(None, ge=0, lt=2**63, description="of a decoding that samples")
    attention: bool = Field(False, description="return where each word of the texts looked")


class Message(BaseModel):
    """A message of a chat; `content`: a text, or parts: texts and pictures as data: URLs."""

    role: str
    content: str | list[dict[str, Any]]


class Chat(Ask):
    """The body of /v1/chat/completions. Other fields of OpenAI's interface are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(description="the id of the model, as /v1/models lists it")
    messages: list[Message] = Field(description="one message of the user")
    temperature: float | None = Field(None, ge=0, le=2, description="over 0: texts are sampled")
    top_p: float | None = Field(None, gt=0, le=1, description="sample among the most probable tokens")
    stream: bool | None = None

    def as_ask(self, predictor: Predictor) -> Ask:
        """The request with what its message says. The message's text is for the only input of text that `inputs` does
        not name. A temperature or top_p draws texts, whatever beams the recipe has. Raises DataError."""
        if len(self.messages) != 1 or self.messages[0].role != "user":
            raise DataError("messages: the model reads one message of the user, and remembers none; send only that")
        content, names, inputs = self.messages[0].content, predictor.names, dict(self.inputs)
        parts: list[dict[str, Any]] = [{"type": "text", "text": content}] if isinstance(content, str) else content
        texts = [str(part.get("text", "")) for part in parts if part.get("type") == "text"]
        urls = [part["image_url"].get("url") for part in parts if isinstance(part.get("image_url"), dict)]
        if len(texts) + len(urls) < len(parts):
            raise DataError('messages: parts are {"type": "text"} and {"type": "image_url"}')
        if text := "\n".join(texts).strip():
            readers = [name for name in names.required if names.takes[name] == "text" and name not in inputs]
            if len(readers) != 1:
                which = f"'inputs' names them: {', '.join(readers)}" if readers else "leave the text out"
                raise DataError(f"messages: the model has {len(readers)} inputs for a text; {which}")
            inputs[readers[0]] = text
        if urls:
            inputs[PICTURE] = urls if len(urls) > 1 else urls[0]
        drawn: dict[str, Any] = {}
        if self.temperature or (self.temperature is None and self.top_p not in (None, 1.0)):
            drawn = {"do_sample": True, "num_beams": 1, "temperature": self.temperature, "top_p": self.top_p}
        known = type(predictor.recipe.decoding).model_fields
        decoding = {name: value for name, value in drawn.items() if value is not None and name in known}
        return self.model_copy(update={"inputs": inputs, "decoding": decoding | self.decoding})


def as_completion(answer: Answer, model: str, end_id: int, stream: bool) -> dict[str, Any]:
    """Texts as the response of a chat, or as its only event."""
    choices = [
        {
            "index": index,
            "delta" if stream else "message": {"role": "assistant", "content": text.text},
            "finish_reason": "stop" if text.tokens and text.tokens[-1] == end_id else "length",
        }
        for index, text in enumerate(answer.texts)
    ]
    kind = "chat.completion.chunk" if stream else "chat.completion"
    about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}
    return {**about, "choices": choices, "mmgen": {"remarks": answer.remarks, "seed": answer.seed}}
