"""Where a model looks while it writes: attention from the slot that each token was read off, to every slot it sees.

Nothing here knows a generator or an encoder: the written text is laid out as for learning, so whatever slots predict
its tokens are the ones whose attention is read. Reports and probes use it; `word_attention` tells it in words people
can read."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .errors import UnavailableError
from .tensors import Batch, Layout, ResolvedExample, Slots, Tail, apply


@dataclass(frozen=True)
class TokenAttention:
    """Of one text: shares of each token's attention, which add up to 1."""

    inputs: Mapping[str, Tensor]  # input name -> (T, N) its real slots
    special: Tensor  # (T,) [CLS], [SEP]
    written: Tensor  # (T,) what was written before, and the slot itself


@dataclass(frozen=True)
class DisplayUnits:
    """What people see of an input's N slots: regions as they are, word pieces put together to words.

    places    the slots of each unit, counted within the input
    boxes     of regions (x0, y0, x1, y1), relative to the picture; none for words
    pictures  which of several pictures a region is of, from 0; empty where there is one
    """

    labels: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    boxes: tuple[tuple[float, ...], ...] = ()
    pictures: tuple[int, ...] = ()


@dataclass(frozen=True)
class WordAttention:
    """One text, word by word.

    words    what was written; the space before a word is kept
    units    input name -> what its words and regions are, in the order of the inputs
    weights  way -> (W words, U units of all inputs and two more: marks such as [SEP], what was written), shares of
             attention
    """

    words: tuple[str, ...]
    units: Mapping[str, DisplayUnits]
    weights: Mapping[str, Tensor]


HeadReduction = Callable[[Sequence[Tensor]], Tensor]  # every layer's (B, heads, L, L) -> the (B, L, L) to be read


def last_layer(layers: Sequence[Tensor]) -> Tensor:
    """Mean over the last layer's heads, as in bertgen's figure 2."""
    return layers[-1].float().mean(1)


def all_layers(layers: Sequence[Tensor]) -> Tensor:
    """Mean over all heads of all layers: the last one of a small encoder often looks at little but itself."""
    return torch.stack([layer.float().mean(1) for layer in layers]).mean(0)


def one_layer(layer: int, head: int | None = None) -> HeadReduction:
    """One layer, counted from 0 (or from -1, the last); one of its heads, or without `head` their mean."""

    def chosen(layers: Sequence[Tensor]) -> Tensor:
        return layers[layer].float().mean(1) if head is None else layers[layer][:, head].float()

    return chosen


def collate(model: Any, examples: Sequence[ResolvedExample], inputs: Sequence[str]) -> Batch:
    """Examples as a batch of these inputs on the model's device, with nothing to
    learn."""
    readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
    collated = {name: reader.collate([reader.read(each) for each in examples]) for name, reader in readers.items()}
    return Batch(tuple(example.id for example in examples), collated).to(model.device)


def word_attention(
    model: Any,
    examples: Sequence[ResolvedExample],
    inputs: Sequence[str],
    texts: Sequence[Sequence[int]],
    ways: Mapping[str, HeadReduction],
) -> list[WordAttention]:
    """Of B examples and a text of token ids each, as `collate` and `token_attention` have them."""
    gazes = token_attention(model, collate(model, examples, inputs), texts, ways)
    found = []
    for row, (example, tokens) in enumerate(zip(examples, texts, strict=True)):
        by_way = {way: each[row] for way, each in gazes.items()}
        words = words_of(range(len(tokens)), _first_of(model, tokens))
        seen = {name: weights.shape[1] for name, weights in next(iter(by_way.values())).inputs.items()}
        shown = {name: units(model, name, example, count) for name, count in seen.items()}
        weights = {way: _by_word(gazed, shown, [pieces for _, pieces in words]) for way, gazed in by_way.items()}
        found.append(WordAttention(tuple(word for word, _ in words), shown, weights))
    return found


def _first_of(model: Any, tokens: Sequence[int]) -> Callable[[int], str]:
    """The text of so many tokens from the first."""
    return lambda count: model.backbone.decode_text(tokens[:count])


@torch.inference_mode()
def token_attention(
    model: Any, batch: Batch, texts: Sequence[Sequence[int]], ways: Mapping[str, HeadReduction]
) -> dict[str, list[TokenAttention]]:
    """For B inputs and a text of token ids each, read in several ways from one pass.

    `model` is a `mmgen.model.Model` in eval mode. Raises UnavailableError for a backbone that tells no attention, and
    for a generator that reads other rows than it lays out.
    """
    if not model.generator.reads_as_laid_out:
        raise UnavailableError(
            f"{type(model.generator).__name__} does not read texts as it lays them out, so where it looks cannot be "
            "shown"
        )
    prefix = model.prefix(batch)
    laid_out: Tail = model.generator.reader.lay_out([[list(text)] for text in texts])
    tail = apply(laid_out, lambda tensor: tensor.to(prefix.free.device, non_blocking=True))
    rows: Slots = prefix.slots.followed_by(model.behind(prefix, tail))
    encoded = model.backbone.encode(rows, output=("attentions",))
    if not encoded.attentions:
        raise UnavailableError(f"{type(model.backbone).__name__} does not tell its attention")
    columns, length = input_columns(rows), prefix.slots.positions.shape[1]
    found: dict[str, list[TokenAttention]] = {}
    for name, way in ways.items():
        weights = way(encoded.attentions)  # (B, L, L)
        found[name] = []
        for row, own in enumerate(columns):
            seen = weights[row, _asking(tail.labels[row], tail.layout, row) + length]  # (T, L)
            within = seen[:, :length][:, prefix.slots.layout.real[row]].sum(1).cpu()
            inputs = {part: seen[:, places].cpu() for part, places in own.items()}
            total = sum((each.sum(1) for each in inputs.values()), torch.zeros(len(within)))
            found[name].append(TokenAttention(inputs, within - total, 1 - within))
    return found


def input_columns(rows: Slots) -> list[dict[str, Tensor]]:
    """Of every row of a model, where the real slots of each input stand: (N,)."""
    own = {name: rows.of(name) for name in rows.inputs}
    return [{name: mask[row].nonzero().squeeze(1) for name, mask in own.items()} for row in range(len(rows.positions))]


def units(model: Any, name: str, example: ResolvedExample, count: int) -> DisplayUnits:
    """What people see of an input's `count` slots, from what its embedder describes."""
    described = model.embedders[name].describe(example)
    labels = described.get("labels") or [f"{name} {place + 1}" for place in range(count)]
    if described.get("boxes") or not described.get("labels"):
        boxes = tuple(tuple(float(number) for number in box) for box in described.get("boxes", ()))
        places = tuple((place,) for place in range(len(labels)))
        return DisplayUnits(tuple(labels), places, boxes, tuple(described.get("pictures", ())))
    if described.get("spans"):
        text, spans = described["text"], described["spans"]
        words = words_of(range(len(spans)), lambda count: text[: spans[count - 1][1]])
    else:
        string = getattr(model.backbone.tokenizer, "convert_tokens_to_string", " ".join)
        words = words_of(range(len(labels)), lambda count: string(labels[:count]))
    return DisplayUnits(tuple(word for word, _ in words), tuple(tuple(pieces) for _, pieces in words))


def words_of(places: Iterable[int], text: Callable[[int], str]) -> list[tuple[str, list[int]]]:
    """Tokens as words, each with the places of its pieces; the space before a word is kept. `text(n)` is what the first
    n tokens say, so that no tokenizer's spelling of pieces has to be known."""
    words: list[tuple[str, list[int]]] = []
    letters = 0  # letters so far, spaces not counted: a later token may take one back ("it 's" to "it's")
    for place in places:
        now = text(place + 1)
        piece = _rest(now, letters)
        letters += len("".join(piece.split()))
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


def _by_word(gazed: TokenAttention, shown: Mapping[str, DisplayUnits], words: Sequence[Sequence[int]]) -> Tensor:
    """(W, U + 2): a word's attention is the mean of its pieces', a unit's share the sum of its slots'."""
    columns = [gazed.inputs[name][:, list(unit)].sum(1) for name, each in shown.items() for unit in each.places]
    table = torch.stack([*columns, gazed.special, gazed.written], 1)  # (T, U + 2)
    return torch.stack([table[list(pieces)].mean(0) for pieces in words]) if words else table[:0]


def _asking(labels: Tensor, layout: Layout, row: int) -> Tensor:
    """(T,) slots of the tail that predict a token, in the order of the text."""
    slots = (labels != -100).nonzero().squeeze(1)
    return slots[layout.time[row, slots].argsort()]
