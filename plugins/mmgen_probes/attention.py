"""Attention of every written word (bertgen, section 6 and figure 2): a table of many examples, and drawings of some."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mmgen.attention_maps import HeadReduction, WordAttention, all_layers, one_layer, word_attention
from mmgen.errors import DataError, UnavailableError
from mmgen.oom import ADVICE_SMALLER, OomRetry
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep
from mmgen.tensors import ResolvedExample

from . import Attention
from .figure import Row, draw
from .steps import over_steps, write_json

BATCH = 16


class AttentionProbe(Probe):
    """attention.json: every word's shares of attention; EXAMPLE.svg and .png: a row a step, a picture a word."""

    def __init__(self, config: Attention) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        chosen = self._chosen(subject.examples)
        read = list(
            {example.id: example for example in (*_spread(subject.examples, self.config.limit), *chosen)}.values()
        )
        found, notes = over_steps(subject, lambda step, model: self._read(step, model, read, subject.progress))
        write_json(out / "attention.json", self._json(found))
        plots = []
        with subject.progress.task("attention: drawing", len(chosen)) as advance:
            for example in chosen:
                rows = [
                    Row(step.name, step.place, found[step.name][example.id])
                    for step in subject.steps
                    if step.name in found
                ]
                name = re.sub(r"[^\w.-]", "_", example.id)
                draw(rows, _image(subject, example), out / name)
                plots.append(f"{name}.svg")
                advance()
        notes.append(
            f"attention of {self._told()}, from the slot that a word is read off; a word's is the mean of its pieces'"
        )
        if len(read) < len(subject.examples):
            notes.append(f"{len(read)} of {len(subject.examples)} examples, evenly spread")
        notes.append(
            f"drawn, with the share of a word's attention that a panel shows: {', '.join(plots)}; the same as PNG"
        )
        return ProbeResult({"Where written words look, share of attention in %": _shares(found)}, {}, tuple(notes))

    def _chosen(self, examples: Sequence[ResolvedExample]) -> list[ResolvedExample]:
        """Those to draw. Raises DataError for ids there are not."""
        if self.config.ids:
            by_id = {example.id: example for example in examples}
            missing = [name for name in self.config.ids if name not in by_id]
            if missing:
                raise DataError(
                    f"ids: there is no example {', '.join(missing)} among the {len(examples)} to look at, "
                    f"{examples[0].id} and so on"
                )
            return [by_id[name] for name in self.config.ids]
        return _spread(examples, self.config.examples)

    def _read(
        self, step: TrainedStep, model: Any, examples: Sequence[ResolvedExample], progress: Any
    ) -> dict[str, WordAttention]:
        """ResolvedExample id -> what the step's words look at."""
        way = self._way()
        found: dict[str, WordAttention] = {}
        halving = OomRetry(f"attention: {step.name}", ADVICE_SMALLER, say=progress.say)

        def read(part: Sequence[ResolvedExample]) -> list[WordAttention]:
            tokens = [text[: model.generator.max_tokens] for text in _written(step, model, part)]
            return word_attention(model, part, step.inputs, tokens, {"": way})

        with progress.task(f"attention: {step.name}", len(examples), "examples") as advance:
            for first in range(0, len(examples), BATCH):
                for part, known in halving.over(examples[first : first + BATCH], read):
                    found |= {example.id: reading for example, reading in zip(part, known, strict=True)}
                    advance(len(part))
        return found

    def _way(self) -> HeadReduction:
        layer, head = self.config.layer, self.config.head

        def checked(layers: Sequence[Tensor]) -> Tensor:
            if abs(layer) > len(layers):
                raise UnavailableError(f"layer = {layer}: the encoder has {len(layers)} layers")
            if head is not None and head > layers[0].shape[1]:
                raise UnavailableError(f"head = {head}: a layer has {layers[0].shape[1]} heads")
            if layer == 0:
                return all_layers(layers)
            return one_layer(layer - (layer > 0), None if head is None else head - 1)(layers)

        return checked

    def _told(self) -> str:
        layer, head = self.config.layer, self.config.head
        where = {0: "all layers", -1: "the last layer"}.get(layer, f"layer {layer}")
        return f"{where}, {'mean over heads' if head is None else f'head {head}'}"

    def _json(self, found: Mapping[str, Mapping[str, WordAttention]]) -> dict[str, Any]:
        """Columns of `weights`: the units of the step's inputs in their order, then marks such as [SEP], then what was
        written."""
        examples: dict[str, Any] = {}
        for step, by_id in found.items():
            for name, reading in by_id.items():
                example = examples.setdefault(name, {"inputs": {}, "steps": {}})
                for part, units in reading.units.items():
                    labels = [label.strip() for label in units.labels]
                    example["inputs"][part] = {
                        "labels": labels,
                        "boxes": [[round(each, 4) for each in box] for box in units.boxes],
                    }
                weights = [[round(share, 4) for share in row] for row in reading.weights[""].tolist()]
                words = [word.strip() for word in reading.words]
                example["steps"][step] = {"inputs": list(reading.units), "words": words, "weights": weights}
        return {"layer": self.config.layer, "head": self.config.head, "examples": examples}


def _spread(examples: Sequence[ResolvedExample], most: int) -> list[ResolvedExample]:
    count = min(most, len(examples))
    return [examples[place * len(examples) // count] for place in range(count)]


def _written(step: TrainedStep, model: Any, examples: Sequence[ResolvedExample]) -> list[tuple[int, ...]]:
    """Tokens of what the step wrote; it writes now where it has not."""
    if all(example.id in step.texts for example in examples):
        return [step.texts[example.id].tokens for example in examples]
    return [texts[0].tokens for texts in step.generate(model, examples)]


def _image(subject: ProbeInput, example: ResolvedExample) -> Any:
    """The example's picture as PIL has it, or None."""
    keys = (value for value in example.inputs.values() if isinstance(value, str) and value in subject.pictures)
    key = next(keys, None)
    return subject.pictures[key].load().convert("RGB") if key is not None else None


def _shares(found: Mapping[str, Mapping[str, WordAttention]]) -> list[list[Any]]:
    """How a step's words share their attention out, in percent; mean over all words."""
    names = list(
        dict.fromkeys(name for by_id in found.values() for reading in by_id.values() for name in reading.units)
    )
    rows: list[list[Any]] = [["step", *names, "marks", "what was written", "words"]]
    for step, by_id in found.items():
        parts = []
        for reading in by_id.values():
            sizes = [len(units.labels) for units in reading.units.values()]
            pieces = reading.weights[""].split([*sizes, 1, 1], 1)
            told = dict(zip([*reading.units, "marks", "written"], (piece.sum(1) for piece in pieces), strict=True))
            parts.append(
                torch.stack(
                    [told.get(name, torch.zeros(len(reading.words))) for name in (*names, "marks", "written")], 1
                )
            )
        table = 100 * torch.cat(parts)  # (words of all examples, columns)
        own = [name in next(iter(by_id.values())).units for name in names] + [True, True]
        means = table.mean(0).tolist() if len(table) else [None] * table.shape[1]
        rows.append([step, *(value if has else None for value, has in zip(means, own, strict=True)), str(len(table))])
    return rows
