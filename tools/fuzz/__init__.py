"""A fuzzer for everything that mmgen reads: a damaged file must be refused by name, or read correctly.

    python -m tools.fuzz --cases 10000                            all surfaces, a table at the end
    python -m tools.fuzz --surface store --case 17 --keep FOLDER  one case again; its files are kept

A surface is a kind of file with a way to damage it, mmgen's way to read it, and an independent way to read it."""

from .harness import Finding, Outcome, Surface, Tally, fuzz, judge, once

__all__ = ["Finding", "Outcome", "Surface", "Tally", "all_surfaces", "fuzz", "judge", "once"]


def all_surfaces() -> dict[str, Surface]:
    """Every surface by name. What a surface needs (torch, h5py, a tiny run) is created when it is prepared."""
    from . import features, folders, pictures, predictions, published, questions, recipes, results, tasks

    surfaces = [
        surface
        for module in (recipes, questions, tasks, features, pictures, folders, predictions, published, results)
        for surface in module.surfaces()
    ]
    return {surface.name: surface for surface in surfaces}
