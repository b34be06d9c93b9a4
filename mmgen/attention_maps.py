"""Attention maps of generated texts: from the slot that predicts each token to every slot, summed by word and input.

This works for any generator and encoder: the text is laid out as for training, and the attention is read from the slots
that predict its tokens. Reports and probes use this module; `word_attention` gives the maps by words."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from .configs import PROMPT
from .errors import UnavailableError
from .examples import ResolvedExample
from .objectives import Rows
from .prompts import behind_prompts
from .tensors import Batch, Slots, Tail, apply


@dataclass(frozen=True)
class TokenAttention:
    """The attention of the T tokens of a text to the L slots of its row, and which slots those are."""

    weights: Mapping[str, Tensor]  # way -> (T, L) shares, which add up to 1
    inputs: Mapping[str, Tensor]  # input name -> (N,) its real slots
    special: Tensor  # [CLS], [SEP]
    written: Tensor  # earlier tokens of the text, and the slot itself


@dataclass(frozen=True)
class DisplayUnits:
    """The units of an input's N slots for display: regions, or words joined from word pieces.

    places    the slots of each unit, as indices within the input
    boxes     boxes of regions (x0, y0, x1, y1), relative to the picture; empty for words
    pictures  index of the picture of each region; empty for a single picture
    """

    names: tuple[str, ...]
    places: tuple[tuple[int, ...], ...]
    boxes: tuple[tuple[float, ...], ...] = ()
    pictures: tuple[int, ...] = ()


@dataclass(frozen=True)
class WordAttention:
    """One text, word by word.

    words    the words of the text, with the space before each word
    units    input name -> its words or regions, in the order of the inputs
    weights  way -> (W words, U units of all inputs, and two more: special tokens such as [SEP], and the text itself),
             shares of attention
    """

    words: tuple[str, ...]
    units: Mapping[str, DisplayUnits]
    weights: Mapping[str, Tensor]


HeadReduction = Callable[[Sequence[Tensor]], Tensor]  # (B, heads, L, L) of every layer -> (B, L, L)


def all_layers(layers: Sequence[Tensor]) -> Tensor:
    """Mean over all heads of all layers, since the last layer of a small encoder often attends mostly to itself."""
    return torch.stack([layer.float().mean(1) for layer in layers]).mean(0)


def one_layer(layer: int, head: int | None = None) -> HeadReduction:
    """One layer by index (0 is the first, -1 the last); one of its heads, or the mean over heads without `head`."""
    return lambda layers: layers[layer].float().mean(1) if head is None else layers[layer][:, head].float()


last_layer = one_layer(-1)  # as in bertgen's figure 2


def collate(model: Any, examples: Sequence[ResolvedExample], inputs: Sequence[str]) -> Batch:
    """Examples as a batch of these inputs on the model's device, without targets, but with their prompts."""
    readers = {name: model.embedders[name].reader for name in model.inputs if name in inputs}
    collated = {
        name: reader.collate([reader.read(example.seen_by(name)) for example in examples])
        for name, reader in readers.items()
    }
    prompts = {}
    if model.has_generator and model.generator.reader.reads_prompts:
        prompts = {"generator": model.generator.reader.ask(Rows(examples))}
    return Batch(tuple(example.id for example in examples), collated, prompts).to(model.device)


def word_attention(
    model: Any,
    examples: Sequence[ResolvedExample],
    inputs: Sequence[str],
    texts: Sequence[Sequence[int]],
    ways: Mapping[str, HeadReduction],
) -> list[WordAttention]:
    """The attention maps of B examples with one text of token ids each; see `collate` and `token_attention`."""
    attentions, results = token_attention(model, collate(model, examples, inputs), texts, ways), []
    for example, tokens, attention in zip(examples, texts, attentions, strict=True):
        words = words_of([model.backbone.decode_text(tokens[: end + 1]) for end in range(len(tokens))])
        shown = {name: units(model, name, example, len(slots)) for name, slots in attention.inputs.items()}
        groups = [attention.inputs[name][list(unit)] for name, display in shown.items() for unit in display.places]
        weights = {}
        for way, seen in attention.weights.items():  # the sum over the slots of a unit, the mean over those of a word
            table = torch.stack([seen[:, group].sum(1) for group in (*groups, attention.special, attention.written)], 1)
            weights[way] = torch.stack([table[pieces].mean(0) for _, pieces in words]) if words else table[:0]
        results.append(WordAttention(tuple(word for word, _ in words), shown, weights))
    return results


@torch.inference_mode()
def token_attention(
    model: Any, batch: Batch, texts: Sequence[Sequence[int]], ways: Mapping[str, HeadReduction]
) -> list[TokenAttention]:
    """The attention of B inputs with one text of token ids each, in several ways, from one forward pass.

    `model` is a `mmgen.model.Model` in eval mode. Raises UnavailableError for a backbone that returns no attention, and
    for a generator whose rows differ from its layout. A text stands behind the first prompt of its example.
    """
    if not model.generator.reads_as_laid_out:
        raise UnavailableError(
            f"{type(model.generator).__name__} does not encode texts as laid out, so its attention cannot be shown"
        )
    prefix = model.prefix(batch)
    laid_out: Tail = model.generator.reader.lay_out([[list(text)] for text in texts])
    tail = apply(laid_out, lambda tensor: tensor.to(prefix.free.device, non_blocking=True))
    if (prompts := batch.label(PROMPT)) is not None:
        tail = behind_prompts(tail, prompts[:, :1], model.backbone.pad_id)
    rows: Any = prefix.slots.followed_by(model.behind(prefix, tail))
    encoded = model.backbone.encode(rows, output=("attentions",))
    if not encoded.attentions:
        raise UnavailableError(f"{type(model.backbone).__name__} does not return attention weights")
    weights = {name: way(encoded.attentions).cpu() for name, way in ways.items()}  # (B, L, L)
    length, results = prefix.slots.positions.shape[1], []
    for row, columns in enumerate(input_columns(rows)):
        slots = (tail.labels[row] != -100).nonzero().squeeze(1)
        slots = slots[tail.layout.time[row, slots].argsort()].cpu() + length  # that predict, in the order of the text
        inputs = {name: places.cpu() for name, places in columns.items()}
        special = (rows.source[row, :length] < 0).nonzero().squeeze(1).cpu()
        seen = {name: attended[row, slots] for name, attended in weights.items()}
        results.append(TokenAttention(seen, inputs, special, torch.arange(length, rows.positions.shape[1])))
    return results


def input_columns(rows: Slots) -> list[dict[str, Tensor]]:
    """For each row: input name -> the columns (N,) of its real slots."""
    return [
        {name: rows.of(name)[row].nonzero().squeeze(1) for name in rows.inputs} for row in range(len(rows.positions))
    ]


def units(model: Any, name: str, example: ResolvedExample, count: int) -> DisplayUnits:
    """The display units of an input's `count` slots, from the description by its embedder."""
    described = model.embedders[name].describe(example.seen_by(name))
    if spans := described.get("spans"):
        words = words_of([described["text"][:end] for _, end in spans])
        return DisplayUnits(tuple(word for word, _ in words), tuple(tuple(pieces) for _, pieces in words))
    names = described.get("names") or [f"{name} {place + 1}" for place in range(count)]
    boxes = tuple(tuple(map(float, box)) for box in described.get("boxes", ()))
    places = tuple((place,) for place in range(len(names)))
    return DisplayUnits(tuple(names), places, boxes, tuple(described.get("pictures", ())))


def words_of(texts: Sequence[str]) -> list[tuple[str, list[int]]]:
    """Words, with the space before each, and the indices of their tokens. `texts`: of the first token, of the first two
    and so on, so that this works for any tokenizer."""
    words: list[tuple[str, list[int]]] = []
    letters = 0  # letters so far, without spaces, since a later token may remove a space ("it 's" to "it's")
    for place, text in enumerate(texts):
        piece = re.sub(rf"^(\s*\S){{0,{letters}}}", "", text)
        letters += len("".join(piece.split()))
        if not piece.strip():
            continue  # the end token, or part of a character
        if words and re.match(r"\w", piece):
            words[-1] = (words[-1][0] + piece, [*words[-1][1], place])
        else:
            words.append((piece, [place]))
    return words
