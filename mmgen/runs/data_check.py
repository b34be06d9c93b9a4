"""What a recipe's data lack, found in one walk over them: a run raises the first finding that stops it, and
`mmgen data check` prints all."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain, combinations, islice
from pathlib import Path
from statistics import median
from typing import Any

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..data.unread_text import texts_read
from ..errors import DataError, MmgenError
from ..examples import All, Example
from ..features.picture_sources import folder_pictures
from ..features.random_features import random_features
from ..features.store import FeatureStore
from ..model import EMBEDDERS, Model
from ..parts import Backbone
from ..progress import Progress
from ..recipe.tables import GENERATOR, Recipe
from ..training.optimizer import check_patterns

COUNTED = 1000  # examples of a source whose texts are split into tokens
UNKNOWN_SHARE = 0.1  # share of texts with unknown words that is worth a line


@dataclass(frozen=True)
class Finding:
    """Something that the data lack, or that a reader of the results should know.

    place  where: "step 'first', split 'train'"
    what   the problem, and what to do
    ids    all examples or images that it is about
    stops  whether it stops a run
    """

    place: str
    what: str
    ids: Sequence[str] = ()
    advice: str = ""
    stops: bool = True

    def __str__(self) -> str:
        shown = f" ({', '.join(self.ids[:3])}{', ...' * (len(self.ids) > 3)})" if self.ids else ""
        place, advice = f"{self.place}: " if self.place else "", f"; {self.advice}" if self.advice else ""
        return f"{place}{self.what}{shown}{advice}"


def check_data(recipe: Recipe, steps: Sequence[str], datasets: Datasets, model: Model, progress: Progress) -> None:
    """For a run: say the findings about the data of these steps. Raises the first that stops it, and DataError for keys
    of [training] that do not fit."""
    for finding in findings(recipe, datasets, model.backbone, steps):
        if finding.stops:
            raise DataError(str(finding))
        progress.say(str(finding))
    for name in steps:
        if recipe.steps[name].train:
            _check_training(name, recipe, datasets, model)


def _check_training(step: str, recipe: Recipe, datasets: Datasets, model: Model) -> None:
    """Raises DataError for keys that need validation examples where there are none, and for a pattern that matches no
    parameter. The model may lack inputs that the steps to do do not read; patterns about those are not checked then."""
    training, validation = recipe.steps[step].training, datasets.validation_by(step)
    validated = {
        "early_stopping_patience": any(len(source.validation) for source in datasets.sources(step).values()),
        "metric_for_best_model": bool(validation and recipe.judging(step)),
    }
    unknown = ("*", "?", "[", EMBEDDERS) if len(model.inputs) < len(recipe.inputs) else ()
    for key in (*validated, "freeze", "learning_rates"):
        value = getattr(training, key)
        about = ("training", key) if value == getattr(recipe.training, key) else ("steps", step, "training", key)
        if key not in validated:
            check_patterns(model, [pattern for pattern in value if not pattern.startswith(unknown)], about)
        elif value is not None and not validated[key]:
            scores = " that a metric scores" * (key == "metric_for_best_model")
            lacks = f"step '{step}' has no validation examples{scores}"
            error = DataError(f"{lacks}; set data.validation_split, or remove this key")
            error.about = about
            raise error


def all_findings(recipe: Recipe, datasets: Datasets, backbone: Backbone | None) -> Iterator[Finding]:
    """For `mmgen data check`: the findings about all steps, and what its claim of a folder finds. Without the encoder,
    texts are not counted."""
    for split in datasets.main.splits():
        with contextlib.suppress(DataError):  # a damaged file, of which nothing is known
            for what, keys in datasets.main.lacking(split).items():
                yield Finding(f"split '{split}'", f"{len(keys):,} images {what.replace('_', ' ')}", keys, stops=False)
    try:
        datasets.fingerprint()
        yield from findings(recipe, datasets, backbone, recipe.ordered(), all_lengths=True)
    except MmgenError as error:  # of a split that cannot be read, or of ids
        yield Finding("", str(error))


def findings(
    recipe: Recipe, datasets: Datasets, backbone: Backbone | None, steps: Sequence[str], all_lengths: bool = False
) -> Iterator[Finding]:
    """What the data of these steps lack. `all_lengths`: also the lengths of texts that are read whole."""
    trained = [name for name in steps if recipe.steps[name].train]
    yield from _gaps(recipe, datasets, steps)
    lines = [f"{name}: {remark}" for name, remark in random_features(recipe.inputs).items()]
    if backbone is not None:
        lines += _lengths(recipe, datasets, trained, backbone, all_lengths)
    yield from (Finding("", line, stops=False) for line in dict.fromkeys(lines))


def _splits(
    recipe: Recipe, datasets: Datasets, steps: Sequence[str]
) -> Iterator[tuple[str, Sequence[Example], tuple[str, ...], bool]]:
    """What steps read: place, examples, the inputs that these must have, whether they must have targets."""
    for step in steps:
        settings, configs = recipe.steps[step], recipe.sources(step)
        sources = datasets.sources(step) if settings.train else {}
        for name, source in sources.items():
            place, data = f"step '{step}'" + f", data '{name}'" * (len(sources) > 1), configs[name]
            inputs = recipe.required_inputs(source.inputs, source.objectives)
            for split, examples in ((data.train_split, source.examples), (data.validation_split, source.validation)):
                yield (f"{place}, split '{split}'", examples, inputs, GENERATOR in source.objectives)
        if settings.evaluate:
            inputs = recipe.required_inputs(settings.inputs, settings.objectives)
            split = (recipe.scored_data(step) or recipe.data).test_split
            yield (f"step '{step}', split '{split}'", datasets.scored_by(step), inputs, False)


def _gaps(recipe: Recipe, datasets: Datasets, steps: Sequence[str]) -> Iterator[Finding]:
    """Examples that lack an input or a target, and images without features; each of a split for the first step only."""
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

    for place, examples, inputs, targets in _splits(recipe, datasets, steps):
        fields = {name: recipe.inputs[name].fields for name in inputs} | ({GENERATOR: ()} if targets else {})
        fields = {name: paths for name, paths in fields.items() if (id(examples), name) not in seen}
        seen |= {(id(examples), name) for name in fields}
        incomplete: dict[str, list[str]] = {name: [] for name in fields}
        keys = {name: dict[str, None]() for name in fields if name in inputs and recipe.inputs[name].takes == "picture"}
        for example in examples if fields else ():
            for name, paths in fields.items():
                if any(map(example.lacks, paths)) or name == GENERATOR and not example.targets:
                    incomplete[name].append(example.id)
                elif name in keys:
                    values = [value for path in paths for value in example.shown(path)]
                    pictures = chain(*(value if isinstance(value, tuple) else (value,) for value in values))
                    keys[name] |= dict.fromkeys(key for key in pictures if isinstance(key, str))
        for name, ids in incomplete.items():
            if ids:
                lacks = "target" if name == GENERATOR else " or no ".join(map(repr, fields[name]))
                what = f"{len(ids):,} of {len(examples):,} examples have no {lacks}"
                where = "objectives" if name == GENERATOR else "inputs"
                yield Finding(place, what, ids, f"remove these examples, or remove '{name}' from its {where}")
        for name, read in keys.items():
            features = getattr(recipe.inputs[name], "features", None)
            there = known(features, getattr(recipe.inputs[name], "images", None))
            if there is not None and (absent := [key for key in read if key not in there]):
                what, advice = f"{features}: no features", "extract or import them"
                if features is None:
                    what, advice = "no picture", "add the pictures"
                what = f"{what} for {len(absent):,} of {len(read):,} images"
                yield Finding(place, what, absent, f"{advice}, or leave the images out")


def _lengths(
    recipe: Recipe, datasets: Datasets, steps: Sequence[str], backbone: Backbone, all_lengths: bool
) -> Iterator[str]:
    """Lines about texts that are cut or have unknown words, among the first of every source."""
    unknown_id = getattr(backbone.tokenizer, "unk_token_id", None)
    for source in (source for step in steps for source in datasets.sources(step).values()):
        examples = list(islice(source.examples, COUNTED))
        texts = {name: texts_read(recipe.inputs[name], map(resolve, examples)) for name in source.inputs}
        limits = {name: getattr(recipe.inputs[name], "max_tokens", None) for name in source.inputs}
        if GENERATOR in source.objectives:
            texts["targets"] = [text for example in examples for text in example.targets]
            limits["targets"] = getattr(recipe.generator, "max_tokens", 1) - 1 or None  # without the end token
        for name, lines in ((name, lines) for name, lines in texts.items() if lines):
            tokens, limit = backbone.text_encoder(lines), limits[name]
            lengths, first = [*map(len, tokens)], "the first " * (len(source.examples) > COUNTED)
            of = f"{first}{len(lines):,} texts"
            if all_lengths:
                yield f"{name}: {of} have {min(lengths)} to {max(lengths)} tokens, the median is {median(lengths):g}"
            if cut := sum(length > limit for length in lengths if limit):
                yield f"{name}: {cut:,} of {of} are longer than {limit} tokens (max_tokens) and are cut"
            if (unknown := sum(unknown_id in ids[:limit] for ids in tokens)) > UNKNOWN_SHARE * len(lines):
                words = "words or characters that are not in the tokenizer's vocabulary"
                yield f"{name}: {unknown:,} of {of} contain {words}"


def summary(recipe: Recipe, datasets: Datasets) -> Iterator[str]:
    """The lines of the summary. Raises the errors of reading a split."""
    splits = {name: datasets.main.split(name) for name in datasets.main.splits()}
    for name, value in datasets.main.describe().items():
        if name not in ("published", "examples"):
            yield f"{name}: {_in_words(value)}".replace("_", " ")
    for step, settings in recipe.steps.items():
        for source in datasets.sources(step).values() if settings.data else ():
            splits[f"data of step '{step}'{f', {source.name!r}' * (len(settings.data) > 1)}"] = source.examples
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
