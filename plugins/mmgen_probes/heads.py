"""Heads counted and told: how often each was right, how much of its attention goes to regions, tables and plots of
it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from mmgen import plotting
from mmgen.parts import TrainedStep

COLUMNS = 4  # panels side by side


NONE_YET = torch.zeros(0, 0)


@dataclass
class Tally:
    """Sums over queries (a phrase, or a word): of all heads, and of what needs no head."""

    right: Tensor = NONE_YET  # (layers, heads) how often the most attended region was right
    regions: Tensor = NONE_YET  # (layers, heads) shares of attention that went to regions
    count: int = 0
    confident: int = 0  # how often the surest region was right
    any_region: float = 0.0  # how often one drawn by lot would be
    at_best: int = 0  # for how many there is a right region
    scored: bool = False  # whether regions have confidences

    def add(self, looked: Tensor, fits: Tensor, surest: int, scored: bool) -> None:
        """`looked` (layers, heads, R): attention to the regions; `fits` (R,) bool: which are right."""
        if not self.count:
            self.right = self.regions = torch.zeros(looked.shape[:2], dtype=torch.float64)
        self.right = self.right + fits[looked.argmax(-1)]
        self.regions = self.regions + looked.sum(-1)
        self.count += 1
        self.confident += int(fits[surest])
        self.any_region += float(fits.float().mean())
        self.at_best += int(fits.any())
        self.scored |= scored

    def percent(self, value: Any) -> Any:
        return 100 * value / self.count

    def ranked(self) -> list[tuple[int, int]]:
        """(layer, head) from 0, the most accurate first; of equals the one that looks more at regions."""
        layers, heads = self.right.shape
        places = [(layer, head) for layer in range(layers) for head in range(heads)]
        return sorted(places, key=lambda place: (-self.right[place].item(), -self.regions[place].item()))

    def is_active(self, place: tuple[int, int], least: float) -> bool:
        return self.regions[place].item() / self.count > least


def name(place: tuple[int, int]) -> str:
    """As VisualBERT names them, layer-head."""
    return f"{place[0] + 1}-{place[1] + 1}"


def best_heads(tallies: Mapping[str, Tally], active: float, best: int) -> list[list[Any]]:
    """The best active heads of each step, the best of the others, and what needs no head."""
    rows: list[list[Any]] = [["step", "head", "accuracy", "attention on regions", "phrases"]]
    for step, tally in tallies.items():
        ranked = tally.ranked()
        chosen = [place for place in ranked if tally.is_active(place, active)][:best]
        others = [place for place in ranked if not tally.is_active(place, active)][:1]
        for place in chosen + others:
            numbers = [tally.percent(values[place].item()) for values in (tally.right, tally.regions)]
            rows.append([step, f"{name(place)}{' (not active)' * (place in others)}", *numbers, str(tally.count)])
        for label, value in (
            ("surest region", tally.confident),
            ("any region", tally.any_region),
            ("at best", tally.at_best),
        ):
            rows.append([step, label, tally.percent(value), None, str(tally.count)])
    return rows


def relations_table(tallies: Mapping[str, Tally], active: float) -> list[list[Any]]:
    """As VisualBERT's table 2: the best active head for every relation."""
    rows: list[list[Any]] = [["relation", "surest region", "accuracy", "head", "words"]]
    for relation, tally in tallies.items():
        place = next((place for place in tally.ranked() if tally.is_active(place, active)), None)
        found = [None, "-"] if place is None else [tally.percent(tally.right[place].item()), name(place)]
        rows.append([relation, tally.percent(tally.confident), *found, str(tally.count)])
    return rows


def summary(tallies: Mapping[str, Tally], active: float) -> dict[str, Any]:
    """Everything, in percent; rows are layers, columns heads."""
    return {
        query: {
            "count": tally.count,
            "confident": round(tally.percent(tally.confident), 2),
            "any_region": round(tally.percent(tally.any_region), 2),
            "at_best": round(tally.percent(tally.at_best), 2),
            "accuracy": [[round(value, 2) for value in row] for row in tally.percent(tally.right).tolist()],
            "attention_on_regions": [
                [round(value, 2) for value in row] for row in tally.percent(tally.regions).tolist()
            ],
            "active": [name(place) for place in tally.ranked() if tally.is_active(place, active)],
        }
        for query, tally in tallies.items()
        if tally.count
    }


def draw(tallies: Sequence[tuple[TrainedStep, Tally]], active: float, out: Path) -> str:
    """grounding.svg and .png, as VisualBERT's figure 3: a dot a head by layer; a panel a step."""
    return _panels([(step.name, step.place, tally) for step, tally in tallies], active, out / "grounding")


def draw_relations(step: TrainedStep, tallies: Mapping[str, Tally], active: float, out: Path) -> str:
    """relations-STEP.svg and .png, as VisualBERT's figure 4: a panel a relation."""
    return _panels(
        [(relation, step.place, tally) for relation, tally in tallies.items()], active, out / f"relations-{step.name}"
    )


def _panels(panels: Sequence[tuple[str, int, Tally]], active: float, path: Path) -> str:
    from matplotlib.ticker import MaxNLocator

    across = min(len(panels), COLUMNS)
    down = math.ceil(len(panels) / across)
    with plotting.figure(max(5.6, 2.8 * across), 2.9 * down, salt=path.name) as figure:
        grid = figure.subplots(down, across, sharey=True, squeeze=False)
        for axes, (title, place, tally) in zip(grid.flat, panels, strict=False):
            _dots(axes, tally, plotting.colour(place), active)
            axes.set_title(title, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("layer")
        grid.flat[0].set_ylim(bottom=0)  # of all, when all have their dots: the highest decides
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        for row in grid:
            row[0].set_ylabel("accuracy, %")
        legend = figure.legend(
            *grid.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False
        )
        for dots in legend.legend_handles[:2]:
            dots.set_color(plotting.PLAIN_INK)
        return plotting.save(figure, path)


def _dots(axes: Any, tally: Tally, colour: str, active: float) -> None:
    """Active heads large and dark, the others small and light; what needs no head as lines."""
    axes.set_facecolor("none")
    layers, heads = tally.right.shape
    accuracy = tally.percent(tally.right)
    for kind, label, look in ((True, "active head", {"s": 34}), (False, "other head", {"s": 9, "alpha": 0.45})):
        places = [(x, y) for x in range(layers) for y in range(heads) if tally.is_active((x, y), active) is kind]
        axes.scatter(
            [x + 1 for x, _ in places],
            [accuracy[place].item() for place in places],
            color=colour,
            linewidths=0,
            label=label,
            **look,
        )
    axes.axhline(tally.percent(tally.confident), color="#7f7f7f", linewidth=1.2, label="surest region")
    axes.axhline(tally.percent(tally.any_region), color="#7f7f7f", linewidth=1.2, linestyle=":", label="any region")
    axes.set_xlim(0.5, layers + 0.5)
    axes.grid(axis="y", color=plotting.PLAIN_INK, alpha=0.15, linewidth=0.6)
