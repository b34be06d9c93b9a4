"""The probe of similarity: the cosine of [CLS] between reading only the picture and only its caption, by layer.

bertgen, section 6 and figure 3.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from mmgen import plotting
from mmgen.attention_maps import collate
from mmgen.errors import UnavailableError
from mmgen.examples import ResolvedExample
from mmgen.parts import Probe, ProbeInput, ProbeResult, TrainedStep
from mmgen.progress import Progress

from . import Similarity
from .run_steps import in_batches, over_steps, picture_and_text, write_json

RANDOM = "random transformer"


@dataclass(frozen=True)
class Curve:
    """Mean cosines over the examples, one per layer, first layer first."""

    similarity: list[float]  # of a picture and its own caption
    unpaired: list[float] | None  # of a picture and another example's: the similarity that does not depend on content


class SimilarityProbe(Probe):
    """Writes similarity.json, similarity.svg and similarity.png: all steps in one figure, with a random transformer."""

    def __init__(self, config: Similarity) -> None:
        self.config = config

    def run(self, subject: ProbeInput, out: Path) -> ProbeResult:
        compared: list[tuple[str, str]] = []

        def look(step: TrainedStep, model: Any) -> Curve:
            compared.append(names := self._inputs_to_compare(model, subject.examples[0]))
            return curve(model, names, subject.examples, subject.progress)

        curves, notes = over_steps(subject, look)
        first, second = compared[-1]
        curves[RANDOM] = look(TrainedStep(RANDOM, subject.untaught, (first, second)), subject.untaught())
        count = len(subject.examples)
        values = {name: asdict(values) for name, values in curves.items()}
        write_json(out / "similarity.json", {"inputs": (first, second), "examples": count, "curves": values})
        title = f"Cosine of [CLS] between {first} alone and {second} alone"
        plot = _plot_curves(curves, {step.name: step.place for step in subject.steps}, out)
        notes += [
            f"mean over {count} examples; 'unpaired' is the last layer's cosine for a picture and the {second} of "
            "another example",
            f"the {RANDOM} has the same shape and random weights",
        ]
        return ProbeResult({title: _table_of_curves(curves)}, {title: plot}, tuple(notes))

    def _inputs_to_compare(self, model: Any, example: ResolvedExample) -> tuple[str, str]:
        """The two inputs to compare. Raises UnavailableError."""
        if model.backbone.masks == "causal":
            raise UnavailableError("the encoder reads from left to right, so its first slot [CLS] sees no input")
        picture, text = self.config.inputs or picture_and_text(model, example, model.inputs)
        if picture is None or text is None or not {picture, text} <= {*model.inputs}:
            raise UnavailableError(
                f"needs a picture and a text, but the model reads {' and '.join(model.inputs)}; name two of its inputs "
                "with 'inputs'"
            )
        return picture, text


def curve(model: Any, names: Sequence[str], examples: Sequence[ResolvedExample], progress: Progress) -> Curve:
    """Mean cosines over the examples."""
    first, second = (_all_states(model, name, examples, progress) for name in names)  # (layers, Q, H)
    fields = [getattr(model.embedders[name].reader, "field", name) for name in names]
    neighbours = zip(examples, [*examples[-1:], *examples[:-1]], strict=True)
    different = torch.tensor(  # pairs of one picture are left out
        [all(_identity_of_value(a, field) != _identity_of_value(b, field) for field in fields) for a, b in neighbours]
    )
    unpaired = cosine_similarity(first, second.roll(1, 1), dim=-1)[:, different]
    return Curve(_means(cosine_similarity(first, second, dim=-1)), _means(unpaired) if different.any() else None)


def _all_states(model: Any, name: str, examples: Sequence[ResolvedExample], progress: Progress) -> Tensor:
    def states(part: Sequence[ResolvedExample]) -> Sequence[Tensor]:
        return start_states(model, name, part).unbind(1)

    return torch.stack([state for _, state in in_batches(f"similarity: {name}", examples, states, progress)], 1)


def _identity_of_value(example: ResolvedExample, field: str) -> Any:
    """The identity of an input's value: a picture's key, or the text."""
    value = example.inputs.get(field)
    return getattr(value, "key", value)


def _means(cosines: Tensor) -> list[float]:
    return [round(value, 5) for value in cosines.mean(1, dtype=torch.float64).tolist()]


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
    for name, values in curves.items():
        last = f"{values.unpaired[-1]:.3f}" if values.unpaired else None
        rows.append([name, *(f"{value:.3f}" for value in values.similarity), last])
    return rows


def _plot_curves(curves: Mapping[str, Curve], places: Mapping[str, int], out: Path) -> str:
    from matplotlib.ticker import MaxNLocator

    with plotting.figure(5.6, 3.4, salt="similarity") as figure:
        axes = figure.add_subplot(facecolor="none")
        for name, values in curves.items():
            colour = plotting.PLAIN_INK if name == RANDOM else plotting.colour(places[name])
            layers = range(1, len(values.similarity) + 1)
            style = "o--" if name == RANDOM else "o-"
            axes.plot(layers, values.similarity, style, color=colour, markersize=3.5, linewidth=1.6, label=name)
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        axes.set(xlabel="layer", ylabel="cosine")
        axes.grid(axis="y", color=plotting.PLAIN_INK, alpha=0.15, linewidth=0.6)
        figure.legend(loc="outside right upper", frameon=False)
        return plotting.save(figure, out / "similarity")
