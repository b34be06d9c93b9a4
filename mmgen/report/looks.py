"""The attention that a page shows: each word a step wrote, and how it looked at regions and at the caption's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import torch

from ..data import Collator, settle
from ..gaze import Gaze, all_layers, gaze_ways, last_layer
from ..model import Model
from ..tensors import Example, Generation

BATCH = 16
WAYS = {"last": last_layer, "all": all_layers}


@dataclass
class Looks:
    """Of one example.

    units    input -> labels of its regions, or its words
    boxes    input -> its regions' boxes, for inputs that have them
    words    step -> the words it wrote
    weights  way -> step -> a row a word: its inputs' units, special, written; in ten-thousandths of the word's attention
    """

    units: dict[str, list[str]] = field(default_factory=dict)
    boxes: dict[str, list[list[float]]] = field(default_factory=dict)
    words: dict[str, list[str]] = field(default_factory=dict)
    weights: dict[str, dict[str, list[list[int]]]] = field(default_factory=dict)


def look(
    model: Model, step: str, inputs: Sequence[str], examples: Sequence[Example], texts: Mapping[str, Generation],
    looks: Mapping[str, Looks], advance: Callable[..., None],
) -> None:  # fmt: skip
    """Fill `looks`, by example id, with what one step's model does."""
    collate = Collator(model.eval(), inputs, targets=False)
    for first in range(0, len(examples), BATCH):
        part = [settle(example) for example in examples[first : first + BATCH]]
        written = [texts[example.id].tokens[: model.generator.max_tokens] for example in part]
        gazes = gaze_ways(model, collate(part).to(model.device), written, WAYS)
        for row, (example, tokens) in enumerate(zip(part, written, strict=True)):
            _note(looks[example.id], step, model, example, tokens, {way: found[row] for way, found in gazes.items()})
        advance(len(part))


def _note(
    looks: Looks, step: str, model: Model, example: Example, tokens: Sequence[int], gazes: Mapping[str, Gaze]
) -> None:
    decode = model.backbone.decode_text
    words = words_of(range(len(tokens)), lambda count: decode(tokens[:count]))
    looks.words[step] = [word for word, _ in words]
    places = {
        name: _units(looks, name, model, example, weights.shape[1]) for name, weights in gazes["last"].inputs.items()
    }
    for way, gazed in gazes.items():
        columns = [gazed.inputs[name][:, unit].sum(1) for name, units in places.items() for unit in units]
        table = torch.stack([*columns, gazed.special, gazed.written], 1)  # (T, units of all inputs and two more)
        rows = [(10_000 * table[pieces].mean(0)).round().int().tolist() for _, pieces in words]
        looks.weights.setdefault(way, {})[step] = rows


def _units(looks: Looks, name: str, model: Model, example: Example, count: int) -> list[list[int]]:
    """What people see of an input's slots is noted: regions as they are, word pieces as words. The slots of each."""
    told = model.embedders[name].describe(example)
    labels = told.get("labels") or [f"{name} {place + 1}" for place in range(count)]
    units = [(label, [place]) for place, label in enumerate(labels)]
    if told.get("boxes"):
        looks.boxes[name] = [[round(float(number), 3) for number in box] for box in told["boxes"]]
    else:
        string = model.backbone.tokenizer.convert_tokens_to_string
        units = words_of(range(len(labels)), lambda count: string(labels[:count]))
    looks.units[name] = [label for label, _ in units]
    return [places for _, places in units]


def words_of(places: Iterable[int], text: Callable[[int], str]) -> list[tuple[str, list[int]]]:
    """Tokens as words, each with the places of its pieces; the space before a word is kept. `text(n)` is what the first n
    tokens say, so that no tokenizer's spelling of pieces has to be known."""
    words: list[tuple[str, list[int]]] = []
    told = 0  # letters so far, spaces not counted: a later token may take one back ("it 's" to "it's")
    for place in places:
        now = text(place + 1)
        piece = _rest(now, told)
        told += len("".join(piece.split()))
        if not piece:
            continue  # the end, or half of a character
        if words and re.match(r"\w", piece) and not piece[0].isspace():
            words[-1] = (words[-1][0] + piece, [*words[-1][1], place])
        else:
            words.append((piece, [place]))
    return words


def _rest(text: str, letters: int) -> str:
    """What follows the first so many letters."""
    place = 0
    while letters and place < len(text):
        letters -= not text[place].isspace()
        place += 1
    return text[place:]
