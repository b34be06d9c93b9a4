"""Attention of every generated word (bertgen, section 6 and figure 2): a table of many examples, drawings of some."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mmgen.attention_maps import HeadReduction, WordAttention, all_layers, one_layer, word_attention
from mmgen.errors import DataError, UnavailableError
from mmgen.examples import ResolvedExample
from mmgen.features.images import load_image
from mmgen.oom import ADVICE_SMALLER, OomRetry
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep

from . import Attention
from .figure import Row, draw
from .run_steps import over_steps, write_json

BATCH = 16


class AttentionProbe(Probe):
    """Writes attention.json, every word's attention, and EXAMPLE.svg and .png, one row per step and panel per word."""

    def __init__(self, config: Attention) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        drawn_examples = self._examples_to_draw(subject.examples)
        read_examples = list(
            {
                example.id: example
                for example in (*_sample_evenly(subject.examples, self.config.limit), *drawn_examples)
            }.values()
        )
        readings, notes = over_steps(
            subject, lambda step, model: self._read_attention(step, model, read_examples, subject.progress)
        )
        write_json(out / "attention.json", self._as_json(readings))
        plots = []
        with subject.progress.task("attention: drawing", len(drawn_examples)) as advance:
            for example in drawn_examples:
                rows = [
                    Row(step.name, step.place, readings[step.name][example.id])
                    for step in subject.steps
                    if step.name in readings
                ]
                name = re.sub(r"[^\w.-]", "_", example.id)
                draw(rows, _find_image(subject, example), out / name)
                plots.append(f"{name}.svg")
                advance()
        notes.append(
            f"attention of {self._describe_heads()}, from the slot that predicts a word; a word's attention is the "
            "mean over its word pieces"
        )
        if len(read_examples) < len(subject.examples):
            notes.append(f"{len(read_examples)} of {len(subject.examples)} examples, evenly spaced")
        notes.append(
            f"drawings, with the share of a word's attention that a panel shows: {', '.join(plots)}; also as PNG"
        )
        return ProbeResult(
            {"Where written words look, share of attention in %": _shares_table(readings)}, {}, tuple(notes)
        )

    def _examples_to_draw(self, examples: Sequence[ResolvedExample]) -> list[ResolvedExample]:
        """The examples to draw. Raises DataError for unknown ids."""
        if self.config.ids:
            by_id = {example.id: example for example in examples}
            missing = [name for name in self.config.ids if name not in by_id]
            if missing:
                raise DataError(
                    f"ids: no example {', '.join(missing)}; name some of the {len(examples)} examples, such as "
                    f"{examples[0].id}"
                )
            return [by_id[name] for name in self.config.ids]
        return _sample_evenly(examples, self.config.examples)

    def _read_attention(
        self, step: TrainedStep, model: Any, examples: Sequence[ResolvedExample], progress: Any
    ) -> dict[str, WordAttention]:
        """Example id -> attention of the words that the step generated."""
        reduction = self._choose_reduction()
        readings: dict[str, WordAttention] = {}
        halving = OomRetry(f"attention: {step.name}", ADVICE_SMALLER, say=progress.say)

        def read(part: Sequence[ResolvedExample]) -> list[WordAttention]:
            tokens = [text[: model.generator.max_tokens] for text in _tokens_of(step, model, part)]
            return word_attention(model, part, step.inputs, tokens, {"": reduction})

        with progress.task(f"attention: {step.name}", len(examples), "examples") as advance:
            for first in range(0, len(examples), BATCH):
                for part, part_readings in halving.over(examples[first : first + BATCH], read):
                    readings |= {example.id: reading for example, reading in zip(part, part_readings, strict=True)}
                    advance(len(part))
        return readings

    def _choose_reduction(self) -> HeadReduction:
        layer, head = self.config.layer, self.config.head

        def reduce_heads(layers: Sequence[Tensor]) -> Tensor:
            if abs(layer) > len(layers):
                raise UnavailableError(f"layer = {layer}: the encoder has only {len(layers)} layers")
            if head is not None and head > layers[0].shape[1]:
                raise UnavailableError(f"head = {head}: a layer has only {layers[0].shape[1]} heads")
            if layer == 0:
                return all_layers(layers)
            return one_layer(layer - (layer > 0), None if head is None else head - 1)(layers)

        return reduce_heads

    def _describe_heads(self) -> str:
        layer, head = self.config.layer, self.config.head
        place = {0: "all layers", -1: "the last layer"}.get(layer, f"layer {layer}")
        return f"{place}, {'mean over heads' if head is None else f'head {head}'}"

    def _as_json(self, readings: Mapping[str, Mapping[str, WordAttention]]) -> dict[str, Any]:
        """The content of attention.json. The columns of `weights` are the units of the step's inputs in order, special
        tokens such as [SEP], and generated words."""
        examples: dict[str, Any] = {}
        for step, by_id in readings.items():
            for name, reading in by_id.items():
                example = examples.setdefault(name, {"inputs": {}, "steps": {}})
                for part, units in reading.units.items():
                    labels = [label.strip() for label in units.names]
                    example["inputs"][part] = {
                        "labels": labels,
                        "boxes": [[round(corner, 4) for corner in box] for box in units.boxes],
                    }
                weights = [[round(share, 4) for share in row] for row in reading.weights[""].tolist()]
                words = [word.strip() for word in reading.words]
                example["steps"][step] = {"inputs": list(reading.units), "words": words, "weights": weights}
        return {"layer": self.config.layer, "head": self.config.head, "examples": examples}


def _sample_evenly(examples: Sequence[ResolvedExample], limit: int) -> list[ResolvedExample]:
    count = min(limit, len(examples))
    return [examples[index * len(examples) // count] for index in range(count)]


def _tokens_of(step: TrainedStep, model: Any, examples: Sequence[ResolvedExample]) -> list[tuple[int, ...]]:
    """Tokens of the step's texts; texts are generated now if the step has none."""
    if all(example.id in step.texts for example in examples):
        return [step.texts[example.id].tokens for example in examples]
    return [texts[0].tokens for texts in step.generate(model, examples)]


def _find_image(subject: ProbeInput, example: ResolvedExample) -> Any:
    """The example's picture as a PIL image, or None."""
    keys = (value for value in example.inputs.values() if isinstance(value, str) and value in subject.pictures)
    key = next(keys, None)
    return load_image(subject.pictures[key]) if key is not None else None


def _shares_table(readings: Mapping[str, Mapping[str, WordAttention]]) -> list[list[Any]]:
    """Table of the attention of a step's words to each input, in percent; the mean over all words."""
    names = list(
        dict.fromkeys(name for by_id in readings.values() for reading in by_id.values() for name in reading.units)
    )
    rows: list[list[Any]] = [["step", *names, "marks", "what was written", "words"]]
    for step, by_id in readings.items():
        parts = []
        for reading in by_id.values():
            sizes = [len(units.names) for units in reading.units.values()]
            pieces = reading.weights[""].split([*sizes, 1, 1], 1)
            shares = dict(zip([*reading.units, "marks", "written"], (piece.sum(1) for piece in pieces), strict=True))
            parts.append(
                torch.stack(
                    [shares.get(name, torch.zeros(len(reading.words))) for name in (*names, "marks", "written")], 1
                )
            )
        table = 100 * torch.cat(parts)  # (words of all examples, columns)
        present = [name in next(iter(by_id.values())).units for name in names] + [True, True]
        means = table.mean(0).tolist() if len(table) else [None] * table.shape[1]
        rows.append(
            [step, *(value if has else None for value, has in zip(means, present, strict=True)), str(len(table))]
        )
    return rows
