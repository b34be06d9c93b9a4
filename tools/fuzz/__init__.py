"""A fuzzer for everything that mmgen reads: a damaged file must be refused by name, or read correctly.

    python -m tools.fuzz --cases 10000                            all surfaces, a table at the end
    python -m tools.trials fuzz                                   a million cases, in several calls
    python -m tools.fuzz --surface store --case 17 --keep FOLDER  one case again; its files are kept

A surface is a kind of file with a way to damage it, mmgen's way to read it, and an independent way to read it."""

from .harness import Bench, Finding, Outcome, Surface, Tally, fuzz, judge

__all__ = ["BATCHES", "Bench", "Finding", "Outcome", "Surface", "Tally", "all_surfaces", "fuzz", "judge"]


BATCHES = {  # surface -> cases in turn, of a million at least 1,000 each; "" is for the others
    "": 4000,
    "recipe": 400,
    "settings": 600,
    "refs": 1200,
    "instances": 1000,
    "archives": 1600,
    "store": 100,
    "old_store": 100,
    "journal": 200,
    "lxmert_h5": 100,
    "tsv": 250,
    "arrays": 120,
    "image": 2500,
    "weights": 100,
    "pretrained": 150,
    "run_folder": 100,
    "results": 100,
    "checkpoint": 100,
    "commands": 200,
    "published": 2000,
    "ratings": 1600,
    "judged": 300,
    "judge_page": 500,
    "service": 500,
    "export": 100,
    "export_tables": 1200,
    "infilling": 600,
    "conditions": 150,
    "index": 100,
    "feature_shards": 100,
    "frcnn": 100,
    "data_cache": 400,
    "plan": 400,
    "find_index": 500,
}


def all_surfaces() -> dict[str, Surface]:
    """Every surface by name. What a surface needs (torch, h5py, a tiny run) is created when it is prepared."""
    from . import (
        archives,
        caches,
        detectors,
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
        stores,
        tasks,
        vectors,
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
        stores,
        caches,
        detectors,
        vectors,
    )
    surfaces = [surface for module in modules for surface in module.surfaces()]
    names = [surface.name for surface in surfaces]
    assert len({*names}) == len(names), f"two surfaces have one name: {names}"
    return dict(zip(names, surfaces, strict=True))
