"""What a recipe's data lack, found in one walk over them: a run raises the first finding that stops it, and
`mmgen data check` prints all."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

from ..configs import EmbedderConfig, FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..data.unread_text import count_tokens, texts_read
from ..errors import DataError, MmgenError
from ..features.random_features import random_features
from ..features.stores import ADVICE, gaps, open_store
from ..model import EMBEDDERS, Model
from ..parts import Reader
from ..progress import Progress
from ..recipe.tables import GENERATOR, Recipe
from ..tensors import Example
from ..training.optimizer import check_patterns
from .named_extractors import extractor_errors, without_extractor

CHUNK = 4096  # examples in memory at a time
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


@dataclass
class _Walk:
    """The examples of a split, and the first steps that need an input of them (by the input) or their targets."""

    examples: Sequence[Example]
    inputs: dict[str, str] = field(default_factory=dict)
    targets: str = ""


def check_data(recipe: Recipe, steps: Sequence[str], datasets: Datasets, model: Model, progress: Progress) -> None:
    """For a run: say the findings about the data of these steps. Raises the first that stops it."""
    for finding in findings(recipe, datasets, model, steps):
        if finding.stops:
            raise finding.error or DataError(str(finding))
        progress.say(str(finding))


def findings(
    recipe: Recipe, datasets: Datasets, model: Model | None = None, steps: Sequence[str] = ()
) -> Iterator[Finding]:
    """What the data of these steps lack; by default of all steps. Without the model, features are looked up in their
    files; with it, its readers say what they lack, and patterns of parameters and lengths of texts are checked."""
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
        yield from _of_data_sets(recipe, datasets)
    yield from map(Finding.of, _errors_of_settings(recipe, datasets, steps, model))
    for walk in _walks(recipe, datasets, steps):
        yield from _gaps(walk, recipe, datasets, model)
    lines = [f"{name}: {remark}" for name, remark in random_features(recipe.inputs).items()]
    lines += without_extractor(recipe.inputs)
    if model is not None:
        lines += _lengths(recipe, datasets, steps, model)
    yield from (Finding("", line, stops=False) for line in lines)


def _of_data_sets(recipe: Recipe, datasets: Datasets) -> Iterator[Finding]:
    """What a run finds before its model is built: splits that cannot be read, ids that are not unique, extractors that
    did not make the features; and what the recipe's data set has left out."""
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


def _walks(recipe: Recipe, datasets: Datasets, steps: Iterable[str]) -> list[_Walk]:
    """Every split that these steps read, once, with what the steps need of it."""
    walks: dict[int, _Walk] = {}

    def add(place: str, split: str, examples: Sequence[Example], inputs: Iterable[str], targets: bool) -> None:
        if len(examples):
            walk = walks.setdefault(id(examples), _Walk(examples))
            walk.targets = walk.targets or f"{place}, split '{split}'" * targets
            for name in inputs:
                walk.inputs.setdefault(name, f"{place}, split '{split}'")

    for step in steps:
        settings, configs, sources = recipe.steps[step], recipe.sources(step), datasets.sources(step)
        for name, source in sources.items():
            place = f"step '{step}'" + f", data '{name}'" * (len(sources) > 1)
            inputs, writes = recipe.required_inputs(source.inputs, source.objectives), GENERATOR in source.objectives
            add(place, configs[name].data.train_split, source.examples, inputs, writes)
            add(place, configs[name].data.validation_split, source.validation, inputs, writes)
        if settings.evaluate:
            data = recipe.scored_data(step) or recipe.data
            inputs = recipe.required_inputs(settings.inputs, settings.objectives)
            add(f"step '{step}'", data.test_split, datasets.scored_by(step), inputs, targets=False)
    return list(walks.values())


def _gaps(walk: _Walk, recipe: Recipe, datasets: Datasets, model: Model | None) -> Iterator[Finding]:
    """Examples of a split that lack an input or a target, and images without features."""
    configs = {name: recipe.inputs[name] for name in walk.inputs}
    incomplete = {name: dict[str, None]() for name in configs}  # ids
    pictures = {name: dict[str, None]() for name, config in configs.items() if isinstance(config, FeaturesConfig)}
    readers = {} if model is None else {name: model.embedders[name].reader for name in configs}
    without_target: list[str] = []
    examples = iter(walk.examples)
    while chunk := list(islice(examples, CHUNK)):
        if walk.targets:
            without_target += [example.id for example in chunk if not example.targets]
        for name, config in configs.items():
            for key in config.fields:
                incomplete[name].update(dict.fromkeys([example.id for example in chunk if example.lacks(key)]))
            if model is None and name in pictures:
                pictures[name].update(dict.fromkeys(_keys(chunk, config.fields)))
        for name, reader in list(readers.items()):
            try:
                reader.find_gaps(chunk)
            except DataError as error:
                yield Finding(walk.inputs[name], _of_all(reader, walk.examples, error))
                del readers[name]
    total = f"of {len(walk.examples):,} examples"
    for name, ids in incomplete.items():
        if ids:
            what = f"{len(ids):,} {total} have no {' or no '.join(map(repr, configs[name].fields))}"
            advice = f"remove these examples, or remove '{name}' from its inputs"
            yield Finding(walk.inputs[name], what, [*ids], advice)
    if without_target:
        what = f"{len(without_target):,} {total} have no target"
        advice = f"remove these examples, or remove '{GENERATOR}' from its objectives"
        yield Finding(walk.targets, what, without_target, advice)
    for name, keys in pictures.items() if model is None else ():
        for what, absent, advice in _without_features(configs[name], list(keys), datasets):
            yield Finding(walk.inputs[name], what, absent, advice)


def _of_all(reader: Reader, examples: Sequence[Example], error: DataError) -> str:
    """What a reader says about all examples, which had this error about some of them."""
    try:
        reader.find_gaps(examples)
    except DataError as of_all:
        return str(of_all)
    return str(error)


def _keys(examples: Iterable[Example], fields: Sequence[str]) -> Iterator[str]:
    """The keys of the pictures of examples, of all alternatives."""
    for value in (value for example in examples for name in fields for value in example.shown(name)):
        yield from (key for key in (value if isinstance(value, tuple) else (value,)) if isinstance(key, str))


def _without_features(
    config: EmbedderConfig, keys: Sequence[str], datasets: Datasets
) -> Iterator[tuple[str, list[str], str]]:
    """What images lack, their keys, and advice. A file of features that is missing is left to `missing_parts`."""
    assert isinstance(config, FeaturesConfig)
    if config.features is not None:
        with contextlib.suppress(MmgenError), contextlib.closing(open_store(config.features)) as store:
            yield from ((what, absent, ADVICE) for what, absent in gaps(store, keys))
        return
    try:
        known = {picture.key for picture in datasets.pictures()}
    except DataError as error:
        yield str(error), [], ""
        return
    if absent := [key for key in keys if key not in known]:
        yield f"no picture for {len(absent):,} of {len(keys):,} images", absent, "add them, or leave the images out"


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
