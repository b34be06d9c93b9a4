"""A fuzzer for everything that mmgen reads: a damaged file must be refused by name, or read correctly.

    python -m tools.fuzz --cases 10000                            all surfaces, a table at the end
    python -m tools.trials fuzz                                   a million cases, in several sittings
    python -m tools.fuzz --surface store --case 17 --keep FOLDER  one case again; its files are kept

A surface is a kind of file with a way to damage it, mmgen's way to read it, and an independent way to read it."""

from .harness import Finding, Outcome, Surface, Tally, fuzz, judge

__all__ = ["Finding", "Outcome", "Surface", "Tally", "all_surfaces", "fuzz", "judge"]


def all_surfaces() -> dict[str, Surface]:
    """Every surface by name. What a surface needs (torch, h5py, a tiny run) is created when it is prepared."""
    from . import (
        archives,
        features,
        folders,
        judges,
        pictures,
        predictions,
        published,
        questions,
        recipes,
        results,
        service,
        shards,
        tasks,
    )

    modules = (
        recipes,
        questions,
        tasks,
        features,
        archives,
        shards,
        pictures,
        folders,
        predictions,
        published,
        results,
        judges,
        service,
    )
    surfaces = [surface for module in modules for surface in module.surfaces()]
    names = [surface.name for surface in surfaces]
    assert len({*names}) == len(names), f"two surfaces have one name: {names}"
    return dict(zip(names, surfaces, strict=True))
