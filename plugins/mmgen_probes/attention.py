"""Attention of every generated word (bertgen, section 6 and figure 2): a table of many examples, drawings of some."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from torch import Tensor

from mmgen.attention_maps import WordAttention, one_layer, word_attention
from mmgen.errors import DataError, UnavailableError
from mmgen.examples import ResolvedExample
from mmgen.features.images import load_image
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep
from mmgen.progress import Progress

from . import Attention
from .figure import Row, draw
from .run_steps import in_batches, over_steps, write_json

REST = ("marks", "what was written")  # columns beside the inputs


class AttentionProbe(Probe):
    """Writes attention.json, every word's attention, and EXAMPLE.svg and .png, one row per step and panel per word."""

    def __init__(self, config: Attention) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        drawn = self._examples_to_draw(subject.examples)
        sample = _sample_evenly(subject.examples, self.config.limit)
        examples = list({example.id: example for example in (*sample, *drawn)}.values())
        readings, notes = over_steps(subject, lambda step, model: self._read(step, model, examples, subject.progress))
        write_json(out / "attention.json", self._as_json(readings))
        plots = []
        with subject.progress.task("attention: drawing", len(drawn)) as advance:
            for example in drawn:
                rows = [
                    Row(step.name, step.place, readings[step.name][example.id])
                    for step in subject.steps
                    if step.name in readings
                ]
                name = re.sub(r"[^\w.-]", "_", example.id)
                draw(rows, _find_image(subject, example), out / name)
                plots.append(f"{name}.svg")
                advance()
        head = "mean over heads" if self.config.head is None else f"head {self.config.head}"
        notes += [
            f"attention of layer {self.config.layer}, {head}, from the slot that predicts a word; a word's attention "
            "is the mean over its word pieces",
            f"{len(examples)} of {len(subject.examples)} examples, evenly spaced",
            f"drawings, with the share of a word's attention that a panel shows: {', '.join(plots)}; also as PNG",
        ]
        return ProbeResult(
            {"Where written words look, share of attention in %": _shares_table(readings)}, {}, tuple(notes)
        )

    def _examples_to_draw(self, examples: Sequence[ResolvedExample]) -> list[ResolvedExample]:
        """The examples to draw. Raises DataError for unknown ids."""
        by_id = {example.id: example for example in examples}
        if missing := [name for name in self.config.ids if name not in by_id]:
            raise DataError(
                f"ids: no example {', '.join(missing)}; name some of the {len(by_id)}, such as {[*by_id][0]}"
            )
        return [by_id[name] for name in self.config.ids] or _sample_evenly(examples, self.config.examples)

    def _read(
        self, step: TrainedStep, model: Any, examples: Sequence[ResolvedExample], progress: Progress
    ) -> dict[str, WordAttention]:
        """Example id -> attention of the words that the step generated."""

        def read(part: Sequence[ResolvedExample]) -> list[WordAttention]:
            tokens = [text[: model.generator.max_tokens] for text in _tokens_of(step, model, part)]
            return word_attention(model, part, step.inputs, tokens, {"": self._chosen_heads})

        pairs = in_batches(f"attention: {step.name}", examples, read, progress)
        return {example.id: reading for example, reading in pairs}

    def _chosen_heads(self, layers: Sequence[Tensor]) -> Tensor:
        layer, head = self.config.layer, self.config.head
        if not 0 < abs(layer) <= len(layers):
            raise UnavailableError(
                f"layer = {layer}: the encoder has the layers 1 to {len(layers)}, or -1 for the last"
            )
        if head is not None and head > layers[0].shape[1]:
            raise UnavailableError(f"head = {head}: a layer has only {layers[0].shape[1]} heads")
        return one_layer(layer - (layer > 0), None if head is None else head - 1)(layers)

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
    results = [reading for by_id in readings.values() for reading in by_id.values()]
    names = [*dict.fromkeys(name for reading in results for name in reading.units), *REST]
    rows: list[list[Any]] = [["step", *names, "words"]]
    for step, by_id in readings.items():
        totals: dict[str, float] = {}
        words = sum(len(reading.words) for reading in by_id.values())
        for reading in by_id.values():
            sizes = [*(len(units.names) for units in reading.units.values()), 1, 1]
            pieces = reading.weights[""].sum(0).split(sizes)
            for name, piece in zip([*reading.units, *REST], pieces, strict=True):
                totals[name] = totals.get(name, 0.0) + 100 * piece.sum().item()
        rows.append([step, *(totals[name] / words if words and name in totals else None for name in names), str(words)])
    return rows
