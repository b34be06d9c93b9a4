"""The attention that a page shows: each word a step wrote, and how it looked at regions and at the caption's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ..data import Collator, settle
from ..gaze import Gaze, gaze
from ..model import Model
from ..tensors import Example, Generation

BATCH = 16


@dataclass
class Looks:
    """Of one example. Weights are in thousandths of a word's attention."""

    units: dict[str, list[str]] = field(default_factory=dict)  # input -> its regions' labels, or its words
    boxes: dict[str, list[list[float]]] = field(default_factory=dict)  # input -> its regions, for inputs that have boxes
    words: dict[str, list[str]] = field(default_factory=dict)  # step -> the words it wrote
    weights: dict[str, list[list[int]]] = field(default_factory=dict)  # step -> a row a word: its inputs' units, special, written


def look(
    model: Model, step: str, inputs: Sequence[str], examples: Sequence[Example], texts: Mapping[str, Generation],
    looks: Mapping[str, Looks], advance: Callable[..., None],
) -> None:  # fmt: skip
    """Fill `looks`, by example id, with what one step's model does."""
    collate = Collator(model.eval(), inputs, targets=False)
    for first in range(0, len(examples), BATCH):
        part = [settle(example) for example in examples[first : first + BATCH]]
        written = [texts[example.id].tokens[: model.generator.max_tokens] for example in part]
        for example, tokens, gazed in zip(part, written, gaze(model, collate(part).to(model.device), written), strict=True):
            _note(looks[example.id], step, model, example, tokens, gazed)
        advance(len(part))


def _note(looks: Looks, step: str, model: Model, example: Example, tokens: Sequence[int], gazed: Gaze) -> None:
    decode, string = model.backbone.decode_text, model.backbone.tokenizer.convert_tokens_to_string
    words = words_of(range(len(tokens)), lambda count: decode(tokens[:count]))
    columns = []
    for name, weights in gazed.inputs.items():
        told = model.embedders[name].describe(example)
        labels = told.get("labels") or [f"{name} {place + 1}" for place in range(weights.shape[1])]
        units = [(label, [place]) for place, label in enumerate(labels)]
        if told.get("boxes"):
            looks.boxes[name] = [[round(float(number), 3) for number in box] for box in told["boxes"]]
        else:
            units = words_of(range(len(labels)), lambda count, labels=labels: string(labels[:count]))
        looks.units[name] = [label for label, _ in units]
        columns += [weights[:, places].sum(1) for _, places in units]
    table = torch.stack([*columns, gazed.special, gazed.written], 1)  # (T, units of all inputs and two more)
    looks.words[step] = [word for word, _ in words]
    looks.weights[step] = [(1000 * table[places].mean(0)).round().int().tolist() for _, places in words]


def words_of(places: Iterable[int], text: Callable[[int], str]) -> list[tuple[str, list[int]]]:
    """Tokens as words, each with the places of its pieces; the space before a word is kept. `text(n)` is what the first n
    tokens say, so that no tokenizer's spelling of pieces has to be known."""
    words: list[tuple[str, list[int]]] = []
    before = ""
    for place in places:
        now = text(place + 1)
        piece = now[len(before) :] if now.startswith(before) else now[len(_shared(before, now)) :]
        before = now
        if not piece:
            continue  # the end, or half of a character
        if words and re.match(r"\w", piece) and not piece[0].isspace():
            words[-1] = (words[-1][0] + piece, [*words[-1][1], place])
        else:
            words.append((piece, [place]))
    return words


def _shared(one: str, other: str) -> str:
    size = next((place for place, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[:size]

