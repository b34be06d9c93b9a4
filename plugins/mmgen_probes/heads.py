"""Statistics of attention heads: how often each is correct, its share on regions; their tables and plots."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import Tensor

from mmgen import plotting

COLUMNS = 4  # panels side by side
BEST = 3  # active heads of a step in the table


@dataclass
class Tally:
    """Sums over queries (phrases or words), for all heads and for the baselines without a head."""

    right: Any = 0  # (layers, heads) how often the most attended region is correct
    regions: Any = 0  # (layers, heads) sums of the attention on regions
    count: int = 0
    confident: int = 0  # how often the surest region is correct
    any_region: float = 0.0  # expected count for a random region
    at_best: int = 0  # number of queries with a correct region

    def add(self, weights: Tensor, fits: Tensor, surest: int) -> None:
        """Add a query. `weights` (layers, heads, R): attention to the regions; `fits` (R,) bool: correct regions."""
        self.right = self.right + fits[weights.argmax(-1)].double()
        self.regions = self.regions + weights.sum(-1).double()
        self.count += 1
        self.confident += int(fits[surest])
        self.any_region += float(fits.float().mean())
        self.at_best += int(fits.any())

    def percent(self, value: Any) -> Any:
        return 100 * value / self.count

    def rank_heads(self, least: float, active: bool = True) -> list[tuple[int, int]]:
        """(layer, head) from 0 of the heads that are active, or not, by decreasing accuracy; ties by more attention on
        regions. A head is active if more than the share `least` of its attention goes to regions."""
        layers, heads = self.right.shape
        places = [(layer, head) for layer in range(layers) for head in range(heads)]
        some = [place for place in places if (self.regions[place].item() / self.count > least) is active]
        return sorted(some, key=lambda place: (-self.right[place].item(), -self.regions[place].item()))


def name(place: tuple[int, int]) -> str:
    """A head's name as in VisualBERT: layer-head, from 1."""
    return f"{place[0] + 1}-{place[1] + 1}"


def best_heads(tallies: Mapping[str, Tally], least: float) -> list[list[Any]]:
    """Table of each step's best active heads, its best inactive head, and the baselines without a head."""
    rows: list[list[Any]] = [["step", "head", "accuracy", "attention on regions", "phrases"]]
    for step, tally in tallies.items():
        named = [(name(place), place) for place in tally.rank_heads(least)[:BEST]]
        named += [(f"{name(place)} (not active)", place) for place in tally.rank_heads(least, active=False)[:1]]
        cells: list[tuple[str, Any, Any]] = [
            (label, tally.right[place].item(), tally.regions[place].item()) for label, place in named
        ]
        cells += [("surest region", tally.confident, None), ("any region", tally.any_region, None)]
        for label, right, regions in (*cells, ("at best", tally.at_best, None)):
            attention = None if regions is None else tally.percent(regions)
            rows.append([step, label, tally.percent(right), attention, str(tally.count)])
    return rows


def relations_table(tallies: Mapping[str, Tally], least: float) -> list[list[Any]]:
    """Table of the best active head for every relation, as VisualBERT's table 2."""
    rows: list[list[Any]] = [["relation", "surest region", "accuracy", "head", "words"]]
    for relation, tally in tallies.items():
        ranked = tally.rank_heads(least)
        cells = [tally.percent(tally.right[ranked[0]].item()), name(ranked[0])] if ranked else [None, "-"]
        rows.append([relation, tally.percent(tally.confident), *cells, str(tally.count)])
    return rows


def summary(tally: Tally, least: float) -> dict[str, Any]:
    """All results as JSON, in percent; rows are layers, columns are heads."""
    return {
        "count": tally.count,
        "confident": tally.percent(tally.confident),
        "any_region": tally.percent(tally.any_region),
        "at_best": tally.percent(tally.at_best),
        "accuracy": tally.percent(tally.right).tolist(),
        "attention_on_regions": tally.percent(tally.regions).tolist(),
        "active": [name(place) for place in tally.rank_heads(least)],
    }


def draw(panels: Sequence[tuple[str, int, Tally]], least: float, path: Path) -> str:
    """Write `path`.svg and .png, like VisualBERT's figures 3 and 4: one dot per head by layer. A panel has a title, the
    index of a step and a tally."""
    from matplotlib.ticker import MaxNLocator

    across = min(len(panels), COLUMNS)
    down = math.ceil(len(panels) / across)
    with plotting.figure(max(5.6, 2.8 * across), 2.9 * down, salt=path.name) as figure:
        grid = figure.subplots(down, across, sharey=True, squeeze=False)
        for axes, (title, place, tally) in zip(grid.flat, panels, strict=False):
            _draw_dots(axes, tally, plotting.colour(place), least)
            axes.set_title(title, loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set(xlabel="layer", ylabel="accuracy, %")
        grid.flat[0].set_ylim(bottom=0)  # after all panels have dots, because they share an axis
        for axes in grid.flat[len(panels) :]:
            axes.set_axis_off()
        handles, labels = grid.flat[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        return plotting.save(figure, path)


def _draw_dots(axes: Any, tally: Tally, colour: str, least: float) -> None:
    """Draw active heads as large dark dots, other heads as small light dots, and baselines as lines."""
    axes.set_facecolor("none")
    accuracy = tally.percent(tally.right)
    for active, label, look in ((True, "active head", {"s": 34}), (False, "other head", {"s": 9, "alpha": 0.45})):
        places = tally.rank_heads(least, active)
        heights = [accuracy[place].item() for place in places]
        axes.scatter([layer + 1 for layer, _ in places], heights, color=colour, linewidths=0, label=label, **look)
    for label, value, style in (("surest region", tally.confident, "-"), ("any region", tally.any_region, ":")):
        axes.axhline(tally.percent(value), color="#7f7f7f", linewidth=1.2, linestyle=style, label=label)
    axes.set_xlim(0.5, len(accuracy) + 0.5)
    axes.grid(axis="y", color=plotting.PLAIN_INK, alpha=0.15, linewidth=0.6)
