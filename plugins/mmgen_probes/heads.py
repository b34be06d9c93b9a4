"""Statistics of attention heads: how often each is correct, its share on regions; their tables and plots."""

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
    """Sums over queries (phrases or words), for all heads and for the baselines without a head."""

    right: Tensor = NONE_YET  # (layers, heads) how often the most attended region is correct
    regions: Tensor = NONE_YET  # (layers, heads) sums of the attention on regions
    count: int = 0
    confident: int = 0  # how often the surest region is correct
    any_region: float = 0.0  # expected count for a random region
    at_best: int = 0  # number of queries with a correct region
    scored: bool = False  # whether regions have confidences

    def add(self, weights: Tensor, fits: Tensor, surest: int, scored: bool) -> None:
        """Add a query. `weights` (layers, heads, R): attention to the regions; `fits` (R,) bool: correct regions."""
        if not self.count:
            self.right = self.regions = torch.zeros(weights.shape[:2], dtype=torch.float64)
        self.right = self.right + fits[weights.argmax(-1)]
        self.regions = self.regions + weights.sum(-1)
        self.count += 1
        self.confident += int(fits[surest])
        self.any_region += float(fits.float().mean())
        self.at_best += int(fits.any())
        self.scored |= scored

    def percent(self, value: Any) -> Any:
        return 100 * value / self.count

    def rank_heads(self) -> list[tuple[int, int]]:
        """(layer, head) from 0, by decreasing accuracy; ties by more attention on regions."""
        layers, heads = self.right.shape
        places = [(layer, head) for layer in range(layers) for head in range(heads)]
        return sorted(places, key=lambda place: (-self.right[place].item(), -self.regions[place].item()))

    def is_active(self, place: tuple[int, int], least: float) -> bool:
        return self.regions[place].item() / self.count > least


def name(place: tuple[int, int]) -> str:
    """A head's name as in VisualBERT: layer-head, from 1."""
    return f"{place[0] + 1}-{place[1] + 1}"


def best_heads(tallies: Mapping[str, Tally], active: float, best: int) -> list[list[Any]]:
    """Table of each step's best active heads, its best inactive head, and the baselines without a head."""
    rows: list[list[Any]] = [["step", "head", "accuracy", "attention on regions", "phrases"]]
    for step, tally in tallies.items():
        ranked = tally.rank_heads()
        active_heads = [place for place in ranked if tally.is_active(place, active)][:best]
        inactive_heads = [place for place in ranked if not tally.is_active(place, active)][:1]
        for place in active_heads + inactive_heads:
            numbers = [tally.percent(values[place].item()) for values in (tally.right, tally.regions)]
            rows.append(
                [step, f"{name(place)}{' (not active)' * (place in inactive_heads)}", *numbers, str(tally.count)]
            )
        for label, value in (
            ("surest region", tally.confident),
            ("any region", tally.any_region),
            ("at best", tally.at_best),
        ):
            rows.append([step, label, tally.percent(value), None, str(tally.count)])
    return rows


def relations_table(tallies: Mapping[str, Tally], active: float) -> list[list[Any]]:
    """Table of the best active head for every relation, as VisualBERT's table 2."""
    rows: list[list[Any]] = [["relation", "surest region", "accuracy", "head", "words"]]
    for relation, tally in tallies.items():
        place = next((place for place in tally.rank_heads() if tally.is_active(place, active)), None)
        cells = [None, "-"] if place is None else [tally.percent(tally.right[place].item()), name(place)]
        rows.append([relation, tally.percent(tally.confident), *cells, str(tally.count)])
    return rows


def summary(tallies: Mapping[str, Tally], active: float) -> dict[str, Any]:
    """All results as JSON, in percent; rows are layers, columns are heads."""
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
            "active": [name(place) for place in tally.rank_heads() if tally.is_active(place, active)],
        }
        for query, tally in tallies.items()
        if tally.count
    }


def draw(tallies: Sequence[tuple[TrainedStep, Tally]], active: float, out: Path) -> str:
    """Write grounding.svg and .png, like VisualBERT's figure 3: one dot per head by layer, one panel per step."""
    return _draw_panels([(step.name, step.place, tally) for step, tally in tallies], active, out / "grounding")


def draw_relations(step: TrainedStep, tallies: Mapping[str, Tally], active: float, out: Path) -> str:
    """Write relations-STEP.svg and .png, like VisualBERT's figure 4: one panel per relation."""
    return _draw_panels(
        [(relation, step.place, tally) for relation, tally in tallies.items()], active, out / f"relations-{step.name}"
    )


def _draw_panels(panels: Sequence[tuple[str, int, Tally]], active: float, path: Path) -> str:
    from matplotlib.ticker import MaxNLocator

    across = min(len(panels), COLUMNS)
    down = math.ceil(len(panels) / across)
    with plotting.figure(max(5.6, 2.8 * across), 2.9 * down, salt=path.name) as figure:
        grid = figure.subplots(down, across, sharey=True, squeeze=False)
        for axes, (title, place, tally) in zip(grid.flat, panels, strict=False):
            _draw_dots(axes, tally, plotting.colour(place), active)
            axes.set_title(title, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_xlabel("layer")
        grid.flat[0].set_ylim(bottom=0)  # after all panels have dots, because they share an axis
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


def _draw_dots(axes: Any, tally: Tally, colour: str, active: float) -> None:
    """Draw active heads as large dark dots, other heads as small light dots, and baselines as lines."""
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
