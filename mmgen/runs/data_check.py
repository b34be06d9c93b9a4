"""What a recipe's data lack, found in one walk over them: a run raises the first finding that stops it, and
`mmgen data check` prints all."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..configs import EmbedderConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..data.unread_text import count_tokens, texts_read
from ..errors import DataError, MmgenError
from ..examples import Example
from ..features.picture_sources import folder_pictures
from ..features.random_features import random_features
from ..features.stores import open_store
from ..model import EMBEDDERS, Model
from ..progress import Progress
from ..recipe.tables import GENERATOR, Recipe
from ..training.optimizer import check_patterns
from .named_extractors import extractor_errors, without_extractor

COUNTED = 1000  # examples of a source whose texts are split into tokens
UNKNOWN_SHARE = 0.1  # share of texts with unknown words that is worth a line


@dataclass(frozen=True)
class Finding:
    """Something that the data lack, or that a reader of the results should know.

    place   where: "step 'first', split 'train'"
    what    the problem, as a sentence
    ids     all examples or images that it is about
    advice  what to do
    stops   whether it stops a run
    error   the error that it was found by
    """

    place: str
    what: str
    ids: Sequence[str] = ()
    advice: str = ""
    stops: bool = True
    error: MmgenError | None = None

    @classmethod
    def of(cls, error: MmgenError) -> Finding:
        return cls("", str(error), error=error)

    @property
    def about(self) -> tuple[str, ...]:
        """The key of the recipe that it is about; empty if `place` says where it is."""
        return getattr(self.error, "about", ())

    def __str__(self) -> str:
        shown = f" ({', '.join(self.ids[:3])}{', ...' * (len(self.ids) > 3)})" if self.ids else ""
        place, advice = f"{self.place}: " if self.place else "", f"; {self.advice}" if self.advice else ""
        return f"{place}{self.what}{shown}{advice}"


def check_data(recipe: Recipe, steps: Sequence[str], datasets: Datasets, model: Model, progress: Progress) -> None:
    """For a run: say the findings about the data of these steps. Raises the first that stops it."""
    for finding in findings(recipe, datasets, model, steps):
        if finding.stops:
            raise finding.error or DataError(str(finding))
        progress.say(str(finding))


def findings(
    recipe: Recipe, datasets: Datasets, model: Model | None = None, steps: Sequence[str] = ()
) -> Iterator[Finding]:
    """What the data of these steps lack, each once; by default of all steps. Without a model, also what a run finds
    before it builds one; with it, patterns that match no parameter, and the texts that are cut."""
    seen = set[str]()
    try:
        for finding in _all_findings(recipe, datasets, model, steps or recipe.ordered()):
            if str(finding) not in seen:
                seen.add(str(finding))
                yield finding
    except MmgenError as error:  # of a split that cannot be read
        if str(error) not in seen:
            yield Finding.of(error)


def _all_findings(recipe: Recipe, datasets: Datasets, model: Model | None, steps: Sequence[str]) -> Iterator[Finding]:
    if model is None:
        yield from _before_the_model(recipe, datasets)
    trained = [name for name in steps if recipe.steps[name].train]
    yield from map(Finding.of, _errors_of_settings(recipe, datasets, trained, model))
    for split in _splits(recipe, datasets, steps):
        yield from _gaps(split, recipe, datasets)
    lines = [f"{name}: {remark}" for name, remark in random_features(recipe.inputs).items()]
    lines += without_extractor(recipe.inputs)
    if model is not None:
        lines += _lengths(recipe, datasets, trained, model)
    yield from (Finding("", line, stops=False) for line in lines)


def _before_the_model(recipe: Recipe, datasets: Datasets) -> Iterator[Finding]:
    """Splits that cannot be read, ids that are not unique, extractors that did not make the features; and what the
    recipe's data set has left out."""
    for split in datasets.main.splits():
        with contextlib.suppress(DataError):  # a damaged file, of which nothing is known
            for what, keys in datasets.main.lacking(split).items():
                yield Finding(f"split '{split}'", f"{len(keys):,} images {what.replace('_', ' ')}", keys, stops=False)
    try:
        datasets.fingerprint()
    except MmgenError as error:
        yield Finding.of(error)
    yield from map(Finding.of, extractor_errors(recipe, datasets))


def _errors_of_settings(
    recipe: Recipe, datasets: Datasets, steps: Sequence[str], model: Model | None
) -> Iterator[DataError]:
    """Keys of [training] that do not fit the data or the model: no validation examples for early stopping, none that a
    metric could score, and patterns that match no parameter. The model may lack inputs that the steps to run do not
    read; patterns of embedders are not checked then."""
    for name in steps:
        training, problems = recipe.steps[name].training, dict[str, str]()
        nothing = f"step '{name}' has no validation examples; set data.validation_split, or remove this key"
        if not any(len(source.validation) for source in datasets.sources(name).values()):
            problems["early_stopping_patience"] = nothing
        if not datasets.validation_by(name):
            problems["metric_for_best_model"] = nothing
        elif not recipe.judging(name):
            problems["metric_for_best_model"] = f"no metric scores step '{name}'; add one, or remove this key"
        for key, problem in problems.items():
            if getattr(training, key) is not None:
                wrong = DataError(problem)
                wrong.about = _key_of(recipe, name, key)
                yield wrong
        if model is None:
            continue
        lacks_inputs = len(model.inputs) < len(recipe.inputs)
        for key in ("freeze", "learning_rates"):
            for pattern in getattr(training, key):
                if lacks_inputs and pattern.startswith(("*", "?", "[", EMBEDDERS)):
                    continue
                try:
                    check_patterns(model, [pattern], _key_of(recipe, name, key))
                except DataError as error:
                    yield error


def _key_of(recipe: Recipe, step: str, key: str) -> tuple[str, ...]:
    """The table of [training] that a step has the value of a key from."""
    inherited = getattr(recipe.steps[step].training, key) == getattr(recipe.training, key)
    return ("training", key) if inherited else ("steps", step, "training", key)


@dataclass
class _Split:
    """Examples, and the first steps that need an input of them (by the input) or their targets ("": none)."""

    examples: Sequence[Example]
    inputs: dict[str, str] = field(default_factory=dict)
    targets: str = ""


def _splits(recipe: Recipe, datasets: Datasets, steps: Iterable[str]) -> list[_Split]:
    """Every split that these steps read, once."""
    splits: dict[int, _Split] = {}

    def add(place: str, examples: Sequence[Example], inputs: Iterable[str], targets: bool) -> None:
        if len(examples):
            split = splits.setdefault(id(examples), _Split(examples))
            split.targets = split.targets or place * targets
            split.inputs = {**dict.fromkeys(inputs, place), **split.inputs}

    for step in steps:
        settings, configs = recipe.steps[step], recipe.sources(step)
        sources = datasets.sources(step) if settings.train else {}
        for name, source in sources.items():
            place = f"step '{step}'" + f", data '{name}'" * (len(sources) > 1)
            inputs, writes = recipe.required_inputs(source.inputs, source.objectives), GENERATOR in source.objectives
            data = configs[name].data
            for split, examples in ((data.train_split, source.examples), (data.validation_split, source.validation)):
                add(f"{place}, split '{split}'", examples, inputs, writes)
        if settings.evaluate:
            data = recipe.scored_data(step) or recipe.data
            inputs = recipe.required_inputs(settings.inputs, settings.objectives)
            add(f"step '{step}', split '{data.test_split}'", datasets.scored_by(step), inputs, targets=False)
    return list(splits.values())


def _gaps(split: _Split, recipe: Recipe, datasets: Datasets) -> Iterator[Finding]:
    """Examples of a split that lack an input or a target, and images without features."""
    configs = {name: recipe.inputs[name] for name in split.inputs}
    incomplete: dict[str, list[str]] = {name: [] for name in configs}  # ids
    keys = {name: dict[str, None]() for name, config in configs.items() if config.takes == "picture"}
    without_target: list[str] = []
    for example in split.examples:
        if split.targets and not example.targets:
            without_target.append(example.id)
        for name, config in configs.items():
            for path in config.fields:
                if example.lacks(path):
                    incomplete[name].append(example.id)
                    break
                for value in example.shown(path) if name in keys else ():
                    alternatives = value if isinstance(value, tuple) else (value,)
                    keys[name].update((key, None) for key in alternatives if isinstance(key, str))
    count = f"of {len(split.examples):,} examples have no"
    for name, ids in incomplete.items():
        if ids:
            fields = " or no ".join(map(repr, configs[name].fields))
            advice = f"remove these examples, or remove '{name}' from its inputs"
            yield Finding(split.inputs[name], f"{len(ids):,} {count} {fields}", ids, advice)
    if without_target:
        advice = f"remove these examples, or remove '{GENERATOR}' from its objectives"
        yield Finding(split.targets, f"{len(without_target):,} {count} target", without_target, advice)
    for name, names in keys.items():
        for what, absent, advice in _lacks(configs[name], names, datasets):
            yield Finding(split.inputs[name], f"{what} for {len(absent):,} of {len(names):,} images", absent, advice)


def _lacks(config: EmbedderConfig, keys: Collection[str], datasets: Datasets) -> Iterator[tuple[str, list[str], str]]:
    """What an input lacks of images, their keys, and advice. A missing file of features is left to `missing_parts`."""
    if (path := getattr(config, "features", None)) is None:
        folder = getattr(config, "images", None)  # of an input that reads other pictures than those of the data
        known = {picture.key for picture in (folder_pictures(folder) if folder else datasets.pictures())}
        if absent := [key for key in keys if key not in known]:
            yield "no picture", absent, "add the pictures, or leave the images out"
        return
    with contextlib.suppress(MmgenError), contextlib.closing(open_store(path)) as store:
        absent = [key for key in keys if key not in store]
        empty = [key for key in keys if key in store and not store.count(key)]
        for problem, images in (("features", absent), ("regions", empty)):
            if images:
                yield f"{path}: no {problem}", images, "extract or import them, or leave the images out"


def _lengths(recipe: Recipe, datasets: Datasets, steps: Iterable[str], model: Model) -> Iterator[str]:
    """Lines about texts that are cut or have unknown words, among the first of every source."""
    for source in (source for step in steps for source in datasets.sources(step).values()):
        examples = list(islice(source.examples, COUNTED))
        first = "the first " * (len(source.examples) > COUNTED)
        if GENERATOR in source.objectives and (cut := model.generator.reader.cut(examples)):
            yield (
                f"{cut:,} of {first}{sum(len(example.targets) for example in examples):,} targets are longer than "
                f"max_tokens = {model.generator.max_tokens} (with the end token) and are cut"
            )
        for name in recipe.required_inputs(source.inputs, source.objectives):
            config = recipe.inputs[name]
            texts = texts_read(config, map(resolve, examples))
            counts = [count_tokens(text, config, model.backbone) for text in texts]
            share = f"of {first}{len(texts):,} texts"
            if cut := sum(bool(count) for _, count, _ in counts):
                yield f"{name}: {cut:,} {share} are longer than max_tokens and are cut"
            if (unknown := sum(bool(count) for *_, count in counts)) > UNKNOWN_SHARE * len(texts):
                words = "words or characters that are not in the tokenizer's vocabulary"
                yield f"{name}: {unknown:,} {share} contain {words}"
