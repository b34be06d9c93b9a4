"""What a recipe's data lack, found in one walk over them: a run raises the first finding that stops it, and
`mmgen data check` prints all."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

from ..configs import EmbedderConfig
from ..data.datasets import Datasets
from ..errors import DataError, MmgenError
from ..examples import Example
from ..features.fingerprints import random_features
from ..features.images import folder_pictures
from ..features.store import FeatureStore
from ..model import Model
from ..progress import Progress
from ..recipe.tables import GENERATOR, Recipe
from ..training.optimizer import check_patterns


@dataclass(frozen=True)
class Finding:
    """Something that the data lack, or that a reader of the results should know.

    what   where, the problem, and what to do
    ids    all examples or images that it is about
    stops  whether it stops a run
    """

    what: str
    ids: Sequence[str] = ()
    stops: bool = True

    def __str__(self) -> str:
        shown = f" ({', '.join(self.ids[:3])}{', ...' * (len(self.ids) > 3)})" if self.ids else ""
        return f"{self.what}{shown}"


def check_data(recipe: Recipe, steps: Sequence[str], datasets: Datasets, model: Model, progress: Progress) -> None:
    """For a run: say the findings about the data of these steps. Raises the first that stops it, and DataError for keys
    of [training] that do not fit."""
    for finding in findings(recipe, datasets, steps):
        if finding.stops:
            raise DataError(str(finding))
        progress.say(str(finding))
    for name in steps:
        training, sources = recipe.steps[name].training, datasets.sources(name) if recipe.steps[name].train else {}
        for key in ("freeze", "learning_rates", "early_stopping_patience") if sources else ():
            value = getattr(training, key)
            about = ("training", key) if value == getattr(recipe.training, key) else ("steps", name, "training", key)
            if key != "early_stopping_patience":
                if len(model.inputs) == len(recipe.inputs):  # a run of some steps may lack inputs
                    check_patterns(model, value, about)
            elif value and not any(len(source.validation) for source in sources.values()):
                raise DataError(f"step '{name}' has no validation examples; set data.validation_split", about)


def all_findings(recipe: Recipe, datasets: Datasets) -> Iterator[Finding]:
    """For `mmgen data check`: the sizes of splits, and the findings about all steps."""
    main = datasets.main
    try:
        for split in main.splits():
            examples = main.split(split)
            targets = sum(len(example.targets) for example in examples)
            yield Finding(f"split '{split}': {len(examples):,} examples, {targets:,} targets", stops=False)
        datasets.fingerprint()
        yield from findings(recipe, datasets, recipe.ordered())
    except MmgenError as error:  # of a split that cannot be read, or of ids
        yield Finding(str(error))


def _splits(
    recipe: Recipe, datasets: Datasets, steps: Sequence[str]
) -> Iterator[tuple[str, Sequence[Example], tuple[str, ...]]]:
    """What steps read: place, examples, and what these must have: inputs, and targets (GENERATOR)."""
    for step in steps:
        settings, configs = recipe.steps[step], recipe.sources(step)
        sources = datasets.sources(step) if settings.train else {}
        for name, source in sources.items():
            place, data = f"step '{step}'" + f", data '{name}'" * (len(sources) > 1), configs[name]
            inputs = recipe.required_inputs(source.inputs, source.objectives)
            required = (*inputs, *[GENERATOR] * (GENERATOR in source.objectives))
            for split, examples in ((data.train_split, source.examples), (data.validation_split, source.validation)):
                yield f"{place}, split '{split}'", examples, required
        if settings.evaluate:
            split = (recipe.scored_data(step) or recipe.data).test_split
            inputs = recipe.required_inputs(settings.inputs, settings.objectives)
            yield f"step '{step}', split '{split}'", datasets.scored_by(step), inputs


def findings(recipe: Recipe, datasets: Datasets, steps: Sequence[str]) -> Iterator[Finding]:
    """Examples that lack an input or a target and images without features, each of a split for the first step only;
    features of random networks."""
    seen = set[tuple[int, str]]()

    @cache
    def known(features: Path | None, folder: Path | None) -> Collection[str] | None:
        """Keys of a file of features, or of the pictures in a folder, or of the data."""
        if features is None:
            return {picture.key for picture in (folder_pictures(folder) if folder else datasets.pictures())}
        with contextlib.suppress(MmgenError):
            store = FeatureStore(features)
            return {key for key in store if store.count(key)}
        return None  # `missing_parts` reports a missing file

    for place, examples, required in _splits(recipe, datasets, steps):
        names = [name for name in required if (id(examples), name) not in seen]
        seen |= {(id(examples), name) for name in names}
        lacking, keys = {name: list[str]() for name in names}, {name: dict[str, None]() for name in names}
        for example in examples if names else ():
            for name in names:
                config = recipe.inputs.get(name)
                if any(map(example.lacks, config.fields)) if config else not example.targets:
                    lacking[name].append(example.id)
                elif config and config.takes == "picture":
                    keys[name] |= dict.fromkeys(_keys(example, config))
        for name, ids in lacking.items():
            config = recipe.inputs.get(name)
            lacks, where = (" or no ".join(map(repr, config.fields)), "inputs") if config else ("target", "objectives")
            if ids:
                what = f"{place}: {len(ids):,} of {len(examples):,} examples have no {lacks}"
                yield Finding(f"{what}; remove these examples, or remove '{name}' from its {where}", ids)
        for name, read in keys.items():
            features = getattr(recipe.inputs.get(name), "features", None)
            there = known(features, getattr(recipe.inputs[name], "images", None)) if read else None
            if there is not None and (absent := [key for key in read if key not in there]):
                what = f"{features}: no features" if features else "no picture"
                what = f"{place}: {what} for {len(absent):,} of {len(read):,} images"
                yield Finding(f"{what}; add them, or leave the images out", absent)
    for name, remark in random_features(recipe.inputs).items():
        yield Finding(f"{name}: {remark}", stops=False)


def _keys(example: Example, config: EmbedderConfig) -> Iterator[str]:
    """The keys of the pictures that an input may show of an example."""
    values = [value for field in config.fields for value in example.shown(field)]
    alternatives = chain(*(value if isinstance(value, tuple) else (value,) for value in values))
    return (key for key in alternatives if isinstance(key, str))
