"""The probe of similarity: the cosine of [CLS] between reading only the picture and only its caption, by layer.

bertgen, section 6 and figure 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from mmgen import plotting
from mmgen.attention_maps import collate
from mmgen.errors import UnavailableError
from mmgen.examples import ResolvedExample
from mmgen.oom import ADVICE_SMALLER, OomRetry
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep

from . import Similarity
from .run_steps import over_steps, picture_and_text, write_json

RANDOM = "random transformer"


@dataclass(frozen=True)
class Curve:
    """Mean cosines over the examples, one per layer, first layer first."""

    similarity: list[float]  # of a picture and its own caption
    unpaired: (
        list[float] | None
    )  # of a picture and another example's caption: the similarity that does not depend on content


class SimilarityProbe(Probe):
    """Writes similarity.json, similarity.svg and similarity.png: all steps in one figure, with a random transformer."""

    def __init__(self, config: Similarity) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        compared: list[tuple[str, str]] = []

        def look(step: TrainedStep, model: Any) -> Curve:
            compared.append(names := self._inputs_to_compare(model, subject.examples[0]))
            with subject.progress.task(f"similarity: {step.name}", len(subject.examples), "examples") as advance:
                return self.curve(model, names, subject.examples, advance)

        curves, notes = over_steps(subject, look)
        first, second = compared[-1]
        curves[RANDOM] = look(TrainedStep(RANDOM, subject.untaught, (first, second)), subject.untaught())
        write_json(
            out / "similarity.json",
            {
                "inputs": (first, second),
                "examples": len(subject.examples),
                "curves": {name: asdict(curve) for name, curve in curves.items()},
            },
        )
        title = f"Cosine of [CLS] between {first} alone and {second} alone"
        plot = _plot_curves(curves, {step.name: step.place for step in subject.steps}, out)
        count = len(subject.examples)
        notes += [
            f"mean over {count} examples; 'unpaired' is the last layer's cosine for a picture and the {second} of "
            "another example",
            f"the {RANDOM} has the same shape and random weights",
        ]
        return ProbeResult({title: _table_of_curves(curves)}, {title: plot}, tuple(notes))

    def _inputs_to_compare(self, model: Any, example: ResolvedExample) -> tuple[str, str]:
        """The two inputs to compare. Raises UnavailableError."""
        for name in self.config.inputs:
            if name not in model.inputs:
                raise UnavailableError(f"the model has no input '{name}'; choose from: {', '.join(model.inputs)}")
        if self.config.inputs:
            first, second = self.config.inputs
            return first, second
        picture, text = picture_and_text(model, example, model.inputs)
        if picture is None or text is None:
            raise UnavailableError(
                f"needs a picture and a text, but the model reads {' and '.join(model.inputs)}; name two inputs with "
                "'inputs'"
            )
        return picture, text

    def curve(self, model: Any, names: Sequence[str], examples: Sequence[ResolvedExample], advance: Any) -> Curve:
        """Mean cosines over the examples. Raises UnavailableError for a causal backbone, whose [CLS] sees nothing."""
        backbone, size = type(model.backbone).__name__, self.config.batch_size
        if model.backbone.masks == "causal":
            raise UnavailableError(f"{backbone} reads from left to right, so its first slot [CLS] sees no input")
        fields = [getattr(model.embedders[name].reader, "field", name) for name in names]
        paired, unpaired, unpaired_count = torch.zeros(()), torch.zeros(()), 0
        halving = OomRetry("similarity", ADVICE_SMALLER)
        for start in range(0, len(examples), size):
            part = examples[start : start + size]
            first_states, second_states = (
                torch.cat([states for _, states in halving.over(part, partial(start_states, model, name))], 1)
                for name in names
            )  # (layers, B, H)
            paired = paired + cosine_similarity(first_states, second_states, dim=-1).sum(1, dtype=torch.float64)
            shifted = [
                *part[-1:],
                *part[:-1],
            ]  # captions shifted by one; pairs of one picture are left out
            different = torch.tensor(
                [
                    all(_identity_of_value(a, field) != _identity_of_value(b, field) for field in fields)
                    for a, b in zip(part, shifted, strict=True)
                ]
            )
            unpaired = unpaired + cosine_similarity(first_states, second_states.roll(1, 1), dim=-1)[:, different].sum(
                1, dtype=torch.float64
            )
            unpaired_count += int(different.sum())
            advance(len(part))
        return Curve(_round(paired / len(examples)), _round(unpaired / unpaired_count) if unpaired_count else None)


def _identity_of_value(example: ResolvedExample, field: str) -> Any:
    """The identity of an input's value: a picture's key, or the text."""
    value = example.inputs.get(field)
    return getattr(value, "key", value)


def _round(values: Tensor) -> list[float]:
    return [round(value, 5) for value in values.tolist()]


@torch.inference_mode()
def start_states(model: Any, name: str, examples: Sequence[ResolvedExample]) -> Tensor:
    """States (layers, B, H) of [CLS] after every layer, with only this input."""
    if not model.sequence.open:
        raise UnavailableError("rows do not begin with [CLS] because sequence.open = false")
    encoded = model.backbone.encode(model.prefix(collate(model, examples, [name])).slots, output=("hidden",))
    if not encoded.hidden:
        raise UnavailableError(f"{type(model.backbone).__name__} does not return its hidden states")
    return torch.stack([states[:, 0].float().cpu() for states in encoded.hidden[1:]])  # the embeddings come first


def _table_of_curves(curves: Mapping[str, Curve]) -> list[list[Any]]:
    layers = len(next(iter(curves.values())).similarity)
    rows: list[list[Any]] = [["step", *(f"layer {layer + 1}" for layer in range(layers)), "unpaired"]]
    for name, curve in curves.items():
        rows.append(
            [
                name,
                *(f"{value:.3f}" for value in curve.similarity),
                f"{curve.unpaired[-1]:.3f}" if curve.unpaired else None,
            ]
        )
    return rows


def _plot_curves(curves: Mapping[str, Curve], places: Mapping[str, int], out: Path) -> str:
    from matplotlib.ticker import MaxNLocator

    with plotting.figure(5.6, 3.4, salt="similarity") as figure:
        axes = figure.add_subplot(facecolor="none")
        for name, curve in curves.items():
            look = (
                {"color": plotting.PLAIN_INK, "linestyle": "--"}
                if name == RANDOM
                else {"color": plotting.colour(places[name])}
            )
            layers = range(1, len(curve.similarity) + 1)
            axes.plot(layers, curve.similarity, marker="o", markersize=3.5, linewidth=1.6, label=name, **look)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set_xlabel("layer")
        axes.set_ylabel("cosine")
        axes.grid(axis="y", color=plotting.PLAIN_INK, alpha=0.15, linewidth=0.6)
        figure.legend(loc="outside right upper", frameon=False)
        return plotting.save(figure, out / "similarity")
