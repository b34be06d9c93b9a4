"""A fuzzer of everything that mmgen reads: files are spoilt by the hundred, and each must be refused by name or read
rightly.

    python -m tools.fuzz --cases 10000                     all surfaces, a table at the end
    python -m tools.fuzz --surface store --case 17 --keep  one case again, its files kept

A surface is a kind of file with a way to spoil it, mmgen's way to read it, and an independent way to read it.
"""

from .harness import Finding, Outcome, Surface, Tally, fuzz, judge, once

__all__ = ["Finding", "Outcome", "Surface", "Tally", "all_surfaces", "fuzz", "judge", "once"]


def all_surfaces() -> dict[str, Surface]:
    """Every surface by name. What they need (torch, h5py, a tiny run) is made when one is prepared."""
    from . import features, folders, pictures, predictions, published, questions, recipes, results, tasks

    surfaces = [
        surface
        for module in (recipes, questions, tasks, features, pictures, folders, predictions, published, results)
        for surface in module.surfaces()
    ]
    return {surface.name: surface for surface in surfaces}
