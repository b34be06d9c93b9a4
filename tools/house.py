"""Draw the house: the rooms of the core, who imports whom, and the plugins as its roof.

    python -m tools.house        writes docs/_static/house.svg

A curve joins a room to one below, from which it imports, and is wider the more often it does."""

import tomllib
from collections import Counter
from pathlib import Path

import grimp

from mmgen import plotting

ROOT = Path(__file__).resolve().parents[1]
CONTRACTS = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
ROOMS = ["the top level", *reversed(CONTRACTS[0]["layers"][:-1])]
CURVE = {"arrowstyle": "-", "connectionstyle": "arc3,rad=-0.4", "color": "#b3470f", "alpha": 0.5}


def room(module: str) -> int:
    """The place of a module's room, from the ground."""
    name = f"{module}.".split(".")[1]
    return ROOMS.index(name) if name in ROOMS else 0


def draw() -> str:
    """The drawing, as SVG."""
    graph = grimp.build_graph("mmgen", cache_dir=None)
    sizes, imports, top = Counter(map(room, graph.modules)), Counter(), len(ROOMS)
    for name in graph.modules:
        imports.update((room(name), room(other)) for other in graph.find_modules_directly_imported_by(name))
    with plotting.figure(5, 4.5, salt="house", layout=None) as figure:
        axes = figure.add_axes((0, 0, 1, 1), xlim=(0, 1.3))
        axes.set_axis_off()
        axes.fill([0, 0.5, 1], [top - 0.5, top + 1.5, top - 0.5], "#f0c8a8")
        axes.text(0.5, top, "plugins", ha="center")
        axes.barh(range(top), 1, color="#dde4ec")
        for place, name in enumerate(ROOMS):
            axes.text(0.03, place, f"{name}: {sizes[place]} modules", va="center")
        for (home, below), count in sorted(imports.items()):
            if home > below:
                axes.annotate("", (1, below), (1, home), arrowprops={**CURVE, "lw": count**0.5 / 3})
        return plotting.svg(figure)


if __name__ == "__main__":
    (ROOT / "docs/_static/house.svg").write_text(draw(), encoding="utf-8")
