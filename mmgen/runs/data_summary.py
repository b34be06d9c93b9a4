"""The summary of a recipe's data for `mmgen data check`: counts, overlaps of splits, three examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations, islice
from typing import Any

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..recipe.tables import Recipe
from ..tensors import All


def summary(recipe: Recipe, datasets: Datasets) -> Iterator[str]:
    """The lines of the summary. Raises the errors of reading a split."""
    splits = {name: datasets.main.split(name) for name in datasets.main.splits()}
    for name, value in datasets.main.describe().items():
        if name not in ("published", "examples"):
            yield f"{name}: {_in_words(value)}".replace("_", " ")
    for step, settings in recipe.steps.items():
        for source in datasets.sources(step).values() if settings.data_sets else ():
            splits[f"data of step '{step}'{f', {source.name!r}' * (len(settings.data_sets) > 1)}"] = source.examples
    field = next((config.fields[0] for config in recipe.inputs.values() if isinstance(config, FeaturesConfig)), "")
    keys = {name: {key for e in examples for key in e.shown(field) or (e.id,)} for name, examples in splits.items()}
    for name, examples in splits.items():
        yield f"{name}: {len(examples):,} examples, {sum(len(example.targets) for example in examples):,} targets"
    for first, second in combinations(splits, 2):
        shared = len(keys[first] & keys[second])
        yield f"{first} and {second} share {f'{shared:,} images' if shared else 'nothing'}"
    for example in islice(splits[recipe.data.train_split], 3):
        yield f"\n{example.id}"
        for name, value in resolve(example).inputs.items():
            yield f"  {name}: {', '.join(map(str, value.values)) if isinstance(value, All) else value}"
        yield from (f"  {name} = {value}" for name, value in example.labels.items())
        yield from (f"  -> {target}" for target in example.targets)
    yield ""


def _in_words(value: Any) -> str:
    """A value of a data set's description: counts by name, perhaps for every split."""
    if not isinstance(value, Mapping):
        return f"{value:,}" if isinstance(value, int) else str(value)
    counts = (f"{name} {_in_words(count)}" for name, count in value.items() if count)
    return ("; " if any(isinstance(count, Mapping) for count in value.values()) else ", ").join(counts)
