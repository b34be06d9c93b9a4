"""A look at a recipe's data before anything is learnt from it: counts, gaps, overlaps, lengths, examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..errors import DataError, MmgenError
from ..features.multi_file import open_store
from ..parts import Backbone
from ..progress import table
from ..recipe.tables import Recipe
from ..tensors import All, Example

NAMED = 3  # how many of what is missing are named in a line


class DataSummary:
    """What a recipe's data hold, and what a run would lack. `lines` finds it out, and fills the other two.

    problems  what would stop a run, a line each
    missing   (split, what, image or example) of everything that is missing, also where a run goes on without it
    """

    def __init__(self, recipe: Recipe) -> None:
        """Raises what building the data sets raises."""
        self.recipe, self.datasets = recipe, Datasets(recipe)
        self.problems: list[str] = []
        self.missing: list[tuple[str, str, str]] = []

    def lines(self) -> Iterator[str]:
        """Lines to read. Raises what reading a split raises. An encoder that cannot be had costs only the lengths in
        tokens."""
        recipe, dataset = self.recipe, self.datasets.main
        splits = {name: dataset.split(name) for name in dataset.splits()}
        yield from _described(dataset.describe(), splits)
        for name, examples in splits.items():
            yield from self._split(name, examples, self._asked(), self._stops(name))
            for what, images in dataset.lacking(name).items():
                yield self._named(name, what.replace("_", " "), images)
        own = {}
        for step, each in recipe.steps.items():
            for source in self.datasets.sources(step).values() if each.data_sets else ():
                several = f", '{source.name}'" * (len(each.data_sets) > 1)
                own[name := f"what '{step}' learns from{several}"] = source.examples
                asked = recipe.required_inputs(source.inputs, source.objectives)
                yield from self._split(name, source.examples, asked, {read: f"step '{step}'" for read in asked})
        yield from _overlaps(recipe, splits | own)
        yield ""
        yield from self._lengths(splits, own)
        yield from _shown(splits[recipe.data.train_split][:3])

    def _stops(self, split: str) -> dict[str, str]:
        """Inputs without which a run stops in this split of the recipe's own data -> a step that reads them there."""
        data, found = self.recipe.data, {}
        for name, step in self.recipe.steps.items():
            learnt = not step.data_sets and split in (data.train_split, data.validation_split)
            scored = step.evaluate and split == data.test_split and self.recipe.own_data(name) is None
            if learnt or scored:
                asked = self.recipe.required_inputs(step.inputs, step.objectives)
                found.update({read: f"step '{name}'" for read in asked if read not in found})
        return found

    def _asked(self) -> tuple[str, ...]:
        """Inputs that no objective fills."""
        return self.recipe.required_inputs(self.recipe.inputs, self.recipe.objectives)

    def _split(
        self, name: str, examples: Sequence[Example], inputs: Iterable[str], stops: Mapping[str, str]
    ) -> Iterator[str]:
        """What there is of each input that is read from a split. `stops`: see `_stops`."""
        yield ""
        yield f"{name}: {_count(examples, 'example')}, {_count([t for e in examples for t in e.targets], 'target')}"
        for input_, config in self.recipe.inputs.items():
            if input_ not in inputs:
                continue
            lacking = [each.id for each in examples if any(each.lacks(field) for field in config.fields)]
            if lacking:
                yield self._named(name, f"{input_} missing", lacking)
                self._problem(stops.get(input_), f"{name}: {_count(lacking, 'example')} without {input_}")
            if isinstance(config, FeaturesConfig):
                read = [(resolve(each), field) for each in examples for field in config.fields]
                values = [value for each, field in read for value in each.shown(field)]
                keys = list(dict.fromkeys(value for value in values if isinstance(value, str)))
                yield from self._features(name, input_, config, keys, stops.get(input_))

    def _features(
        self, split: str, input_: str, config: FeaturesConfig, keys: list[str], step: str | None
    ) -> Iterator[str]:
        images = _count(keys, "image")
        try:
            if config.features is not None:
                store = open_store(config.features)
                absent = [key for key in keys if key not in store]
                empty = [key for key in keys if key in store and not store.count(key)]
                yield f"  {input_:<19} {len(keys) - len(absent):,} of {images} have features in {config.features}"
                what = {"features": absent, "regions": empty}
            elif config.extractor is not None:
                there = {picture.key for picture in self.datasets.pictures()}
                what = {"picture": [key for key in keys if key not in there]}
                yield f"  {input_:<19} {images}; features will be made by '{config.extractor.type}'"
            else:
                raise DataError("neither features nor an extractor is named")
        except MmgenError as error:
            yield f"  {input_:<19} {error}"
            self._problem(step, f"{input_}: {error}")
            return
        for lack, some in what.items():
            if some:
                yield self._named(split, f"{input_} without {lack}", some)
                self._problem(step, f"{split}: {_count(some, 'image')} without {lack} of {input_}")

    def _named(self, split: str, what: str, ids: Sequence[str]) -> str:
        """A line that names the first few, after all are noted."""
        self.missing += [(split, what, own) for own in ids]
        return f"  {what:<19} {len(ids):,} ({', '.join(ids[:NAMED])}{', ...' * (len(ids) > NAMED)})"

    def _problem(self, step: str | None, text: str) -> None:
        """Noted where a step stumbles over it; once."""
        if step is not None and (told := f"{text}; {step} reads it") not in self.problems:
            self.problems.append(told)

    def _lengths(self, splits: Mapping[str, Sequence[Example]], own: Mapping[str, Sequence[Example]]) -> Iterator[str]:
        """Lengths in tokens, a row for the targets and each input of words in each split."""
        try:
            backbone = self.recipe.backbone.build(texts=list(self.datasets.texts()))
        except MmgenError as error:
            yield f"tokens are not counted without the encoder: {error}"
            return
        limit = getattr(self.recipe.generator, "max_tokens", None)
        rows = [["tokens of a text", "least", "median", "most", "cut", "unknown"]]
        for name, examples in [*splits.items(), *own.items()]:
            texts = [text for each in examples for text in each.targets]
            rows.append([f"{name}: targets", *_spread(backbone, texts, limit and limit - 1)])
            for input_, config in self.recipe.inputs.items():
                texts = [text for each in examples for text in config.texts(resolve(each))]
                if texts and not isinstance(config, FeaturesConfig):
                    rows.append([f"{name}: {input_}", *_spread(backbone, texts, getattr(config, "max_tokens", None))])
        yield table(rows)
        yield "cut: texts that lose their end, being over max_tokens (of a target, the end token counts)"
        yield "unknown: texts with a word or sign that the encoder's vocabulary has not"


def _described(about: Mapping[str, Any], splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """What a data set says of itself. Counts by split become a table, without what is nowhere."""
    counts = {name: {"examples": len(examples)} for name, examples in splits.items()}
    for name, value in about.items():
        if name in ("published", "examples"):
            continue
        if isinstance(value, Mapping) and all(isinstance(value.get(split), Mapping) for split in splits):
            for split in splits:
                counts[split] |= value[split]
        elif isinstance(value, Mapping) and all(isinstance(value.get(split), int) for split in splits):
            for split in splits:
                counts[split][name] = value[split]
        else:
            yield f"{name:<20} {value:,}" if isinstance(value, int) else f"{name:<20} {value}"
    rows = dict.fromkeys(what for split in splits for what in counts[split])
    yield ""
    yield table(
        [
            ["", *splits],
            *(
                [what.replace("_", " "), *(f"{counts[split].get(what, 0):,}" for split in splits)]
                for what in rows
                if any(counts[split].get(what) for split in splits)
            ),
        ]
    )


def _overlaps(recipe: Recipe, splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """Images that are in two splits."""
    pictured = next((config.fields[0] for config in recipe.inputs.values() if isinstance(config, FeaturesConfig)), None)
    keys = {
        name: {key for example in examples for key in example.shown(pictured or "") or (example.id,)}
        for name, examples in splits.items()
    }
    names = list(keys)
    yield ""
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            shared = keys[one] & keys[other]
            yield f"{one} and {other} share {_count(shared, 'image') if shared else 'nothing'}"


def _shown(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield ""
        yield example.id
        for name, value in resolve(example).inputs.items():
            yield f"  {name}: {', '.join(map(str, value.values)) if isinstance(value, All) else value}"
        for name, value in example.labels.items():
            yield f"  {name} = {value}"
        for target in example.targets:
            yield f"  -> {target}"


def _spread(backbone: Backbone, texts: list[str], limit: int | None) -> list[str]:
    """Cells: least, median and most tokens, and how many texts are over the limit and hold what is unknown."""
    if not texts:
        return ["-"] * 5
    tokens = backbone.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]
    lengths, unknown = [len(ids) for ids in tokens], getattr(backbone.tokenizer, "unk_token_id", None)
    cut = "-" if limit is None else f"{sum(length > limit for length in lengths):,}"
    strange = "-" if unknown is None else f"{sum(unknown in ids for ids in tokens):,}"
    return [str(min(lengths)), f"{median(lengths):g}", str(max(lengths)), cut, strange]


def _count(things: Iterable[Any], name: str) -> str:
    number = len(list(things))
    return f"{number:,} {name}{'s' * (number != 1)}"
