"""A fuzzer for everything that mmgen reads: a damaged file must be refused by name, or read correctly.

    python -m tools.fuzz --cases 10000                            all surfaces, a table at the end
    python -m tools.trials fuzz                                   a million cases, in several sittings
    python -m tools.fuzz --surface store --case 17 --keep FOLDER  one case again; its files are kept

A surface is a kind of file with a way to damage it, mmgen's way to read it, and an independent way to read it."""

from .harness import Bench, Finding, Outcome, Surface, Tally, fuzz, judge

__all__ = ["BATCHES", "Bench", "Finding", "Outcome", "Surface", "Tally", "all_surfaces", "fuzz", "judge"]


BATCHES = {  # surface -> cases that take about five seconds of processor time; "" is for the others
    "": 9000,
    "recipe": 1000,
    "settings": 1500,
    "refs": 3000,
    "instances": 2500,
    "archives": 4000,
    "store": 40,
    "old_store": 20,
    "journal": 300,
    "lxmert_h5": 40,
    "tsv": 300,
    "arrays": 300,
    "image": 3000,
    "weights": 100,
    "pretrained": 50,
    "run_folder": 100,
    "results": 20,
    "checkpoint": 20,
    "commands": 60,
    "published": 2000,
    "ratings": 4000,
    "judged": 800,
    "judge_page": 1500,
    "service": 1000,
    "export": 80,
    "infilling": 400,
    "conditions": 400,
}


def all_surfaces() -> dict[str, Surface]:
    """Every surface by name. What a surface needs (torch, h5py, a tiny run) is created when it is prepared."""
    from . import (
        archives,
        exports,
        features,
        folders,
        judges,
        pictures,
        predictions,
        published,
        queries,
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
        exports,
        predictions,
        published,
        results,
        judges,
        service,
        queries,
    )
    surfaces = [surface for module in modules for surface in module.surfaces()]
    names = [surface.name for surface in surfaces]
    assert len({*names}) == len(names), f"two surfaces have one name: {names}"
    return dict(zip(names, surfaces, strict=True))
