"""Answers as clients get them: OpenAI's completions and events, and where the words of texts looked."""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mmgen.attention_maps import WordAttention, all_layers, word_attention
from mmgen.inference.answers import Answer
from mmgen.inference.predictor import Predictor
from mmgen.inference.query_reader import Prepared


def as_completion(answer: Answer, model: str, slots: int, end_id: int) -> dict[str, Any]:
    """The response of a chat. `slots`: about how many the encoded input takes."""
    written = sum(len(text.tokens) for text in answer.texts)
    choices = [
        {
            "index": index,
            "message": {"role": "assistant", "content": text.text},
            "finish_reason": "stop" if text.tokens and text.tokens[-1] == end_id else "length",
        }
        for index, text in enumerate(answer.texts)
    ]
    usage = {"prompt_tokens": slots, "completion_tokens": written, "total_tokens": slots + written}
    about = {"id": f"chatcmpl-{uuid.uuid4().hex}", "object": "chat.completion", "created": int(time.time())}
    return {**about, "model": model, "choices": choices, "usage": usage}


def as_events(done: Mapping[str, Any]) -> str:
    """A completion as server-sent events: one with all texts, and the end."""
    choices = [{**choice, "delta": choice["message"]} for choice in done["choices"]]
    chunk = {**done, "object": "chat.completion.chunk", "choices": choices}
    return f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n"


def word_maps(predictor: Predictor, prepared: Prepared, answer: Answer) -> list[dict[str, Any]]:
    """Of each text of an answer: for each word its shares on each unit of each input; at last special tokens, and the
    text itself."""
    example, tokens = prepared.read[0].example, [text.tokens for text in answer.texts]
    examples = [
        replace(example, labels={**example.labels, "prompt": text.prompt}) if text.prompt else example
        for text in answer.texts
    ]
    maps = word_attention(predictor.model, examples, [*predictor.names.inputs], tokens, {"all": all_layers})
    return [_as_json(one) for one in maps]


def _as_json(attention: WordAttention) -> dict[str, Any]:
    units = {
        name: {"names": list(unit.names), "boxes": [list(box) for box in unit.boxes]}
        for name, unit in attention.units.items()
    }
    weights = [[round(share, 4) for share in row] for row in attention.weights["all"].tolist()]
    return {"words": list(attention.words), "inputs": units, "weights": weights}
