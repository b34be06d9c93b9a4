"""The summary of a recipe's data for `mmgen data check`: counts, missing items, overlaps, lengths, examples."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..data.unread_text import texts_read
from ..errors import DataError, MmgenError
from ..features.random_features import random_features
from ..features.stores import open_store
from ..parts import Backbone, Dataset
from ..progress import Progress, table
from ..recipe.tables import Recipe
from ..registry import built
from ..tensors import All, Example

MOST_NAMED = 3  # ids of missing items in one line
TEXTS = 10_000  # texts that are split into tokens at a time


class DataSummary:
    """Summarises a recipe's data, and collects what a run would lack. `lines` fills the other attributes.

    problems  problems that would stop a run, one line each
    missing   (split, what, image or example) of every item that is missing where it is read
    """

    def __init__(self, recipe: Recipe, progress: Progress) -> None:
        """Raises the errors of the data sets when they are built."""
        self.recipe, self.datasets, self.progress = recipe, Datasets(recipe), progress
        self.problems: list[str] = []
        self.missing: list[tuple[str, str, str]] = []

    def lines(self) -> Iterator[str]:
        """The lines of the summary. Raises the errors of reading a split, after what is missing in all splits. Without
        the encoder, only the lengths in tokens are left out."""
        recipe, dataset = self.recipe, self.datasets.main
        splits, unreadable = self._read_splits(dataset)
        if unreadable is not None:
            for name in dataset.splits():
                yield name
                with contextlib.suppress(DataError):  # a damaged file, of which nothing is known
                    for what, images in dataset.lacking(name).items():
                        yield self._missing_line(name, what.replace("_", " "), images)
            raise unreadable
        yield from _describe_data(dataset.describe(), splits)
        for name, examples in splits.items():
            required = self._required_inputs(name)
            yield from self._describe_split(name, examples, [*required, *self._unread_inputs()], required)
            for what, images in dataset.lacking(name).items():
                yield self._missing_line(name, what.replace("_", " "), images)
        step_examples = {}
        for step, settings in recipe.steps.items():
            for source in self.datasets.sources(step).values() if settings.data_sets else ():
                source_name = f", '{source.name}'" * (len(settings.data_sets) > 1)
                step_examples[name := f"data of step '{step}'{source_name}"] = source.examples
                input_names = recipe.required_inputs(source.inputs, source.objectives)
                yield from self._describe_split(
                    name, source.examples, input_names, {read: f"step '{step}'" for read in input_names}
                )
        yield from _shared_images(recipe, splits | step_examples)
        yield ""
        yield from self._table_of_lengths(splits, step_examples)
        yield from _example_lines(splits[recipe.data.train_split][:3])

    def _read_splits(self, dataset: Dataset) -> tuple[dict[str, Sequence[Example]], DataError | None]:
        """The splits of a data set, and the first error if some cannot be read."""
        splits, errors = {}, list[DataError]()
        for name in dataset.splits():
            with self.progress.task(f"reading {name}", None):
                try:
                    splits[name] = dataset.split(name)
                except DataError as error:
                    errors.append(error)
        return splits, next(iter(errors), None)

    def _required_inputs(self, split: str) -> dict[str, str]:
        """Inputs that a run needs in this split of the recipe's data -> a step that reads the input there."""
        data, readers = self.recipe.data, {}
        for name, step in self.recipe.steps.items():
            trained_on = not step.data_sets and split in (data.train_split, data.validation_split)
            scored_on = step.evaluate and split == data.test_split and self.recipe.scored_data(name) is None
            if trained_on or scored_on:
                input_names = self.recipe.required_inputs(step.inputs, step.objectives)
                readers.update({read: f"step '{name}'" for read in input_names if read not in readers})
        return readers

    def _unread_inputs(self) -> list[str]:
        """Inputs that no step reads, except those that an objective fills."""
        recipe = self.recipe
        read = {name for step in recipe.steps.values() for name in step.inputs}
        return [name for name in recipe.required_inputs(recipe.inputs, recipe.objectives) if name not in read]

    def _describe_split(
        self, name: str, examples: Sequence[Example], inputs: Iterable[str], stops: Mapping[str, str]
    ) -> Iterator[str]:
        """Lines about each input that is read from a split. `stops`: see `_required_inputs`."""
        yield ""
        targets = [target for example in examples for target in example.targets]
        yield f"{name}: {_count_of(examples, 'example')}, {_count_of(targets, 'target')}"
        for input_, config in self.recipe.inputs.items():
            if input_ not in inputs:
                continue
            incomplete_ids = [
                example.id for example in examples if any(example.lacks(field) for field in config.fields)
            ]
            if incomplete_ids:
                yield self._missing_line(name, f"{input_} missing", incomplete_ids)
                self._add_problem(stops.get(input_), f"{name}: {_count_of(incomplete_ids, 'example')} without {input_}")
            if isinstance(config, FeaturesConfig):
                read = [(resolve(example), field) for example in examples for field in config.fields]
                values = [value for example, field in read for value in example.shown(field)]
                keys = list(dict.fromkeys(value for value in values if isinstance(value, str)))
                yield from self._missing_features(name, input_, config, keys, stops.get(input_))

    def _missing_features(
        self, split: str, input_: str, config: FeaturesConfig, keys: list[str], step: str | None
    ) -> Iterator[str]:
        images = _count_of(keys, "image")
        remark = "".join(f"; {text}" for text in random_features({input_: config}).values())
        try:
            if config.features is not None:
                store = open_store(config.features)
                no_features = [key for key in keys if key not in store]
                no_regions = [key for key in keys if key in store and not store.count(key)]
                count = f"{len(keys) - len(no_features):,} of {images}"
                yield f"  {input_:<19} {count} have features in {config.features}{remark}"
                what = {"features": no_features, "regions": no_regions}
            elif config.extractor is not None:
                picture_keys = {picture.key for picture in self.datasets.pictures()}
                what = {"picture": [key for key in keys if key not in picture_keys]}
                yield f"  {input_:<19} {images}; a run extracts features with '{config.extractor.type}'{remark}"
            else:
                raise DataError("the recipe names neither 'features' nor 'extractor'")
        except MmgenError as error:
            yield f"  {input_:<19} {error}"
            self._add_problem(step, f"{input_}: {error}")
            return
        for lack, lacking_keys in what.items():
            if lacking_keys:
                yield self._missing_line(split, f"{input_} without {lack}", lacking_keys)
                self._add_problem(step, f"{split}: {_count_of(lacking_keys, 'image')} without {lack} of {input_}")

    def _missing_line(self, split: str, what: str, ids: Sequence[str]) -> str:
        """A line with the first few ids. All ids are added to `missing`."""
        self.missing += [(split, what, example_id) for example_id in ids]
        return f"  {what:<19} {len(ids):,} ({', '.join(ids[:MOST_NAMED])}{', ...' * (len(ids) > MOST_NAMED)})"

    def _add_problem(self, step: str | None, text: str) -> None:
        """Add a problem of a step, once; no problem if no step reads the input."""
        if step is not None and (problem := f"{text}; {step} reads it") not in self.problems:
            self.problems.append(problem)

    def _table_of_lengths(
        self, splits: Mapping[str, Sequence[Example]], step_examples: Mapping[str, Sequence[Example]]
    ) -> Iterator[str]:
        """The table of lengths in tokens, with a row for the targets and each text input of each split."""
        try:
            encoder, texts = self.recipe.backbone, list(self.datasets.texts())
            backbone = built(encoder, lambda: encoder.build(texts=texts), "the backbone")
        except MmgenError as error:
            yield f"lengths in tokens need the encoder: {error}"
            return
        limit = getattr(self.recipe.generator, "max_tokens", None)
        rows = [["tokens per text", "min", "median", "max", "truncated", "unknown"]]
        for name, examples in [*splits.items(), *step_examples.items()]:
            texts = [text for example in examples for text in example.targets]
            rows.append(self._length_row(f"{name}: targets", backbone, texts, limit and limit - 1))
            for input_, config in self.recipe.inputs.items():
                texts = texts_read(config, map(resolve, examples))
                if texts and not isinstance(config, FeaturesConfig):
                    max_tokens = getattr(config, "max_tokens", None)
                    rows.append(self._length_row(f"{name}: {input_}", backbone, texts, max_tokens))
        yield table(rows)
        yield "truncated: texts longer than max_tokens, whose end is cut off (for targets, the end token counts)"
        yield "unknown: texts with words or characters that are not in the tokenizer's vocabulary"

    def _length_row(self, label: str, backbone: Backbone, texts: Sequence[str], limit: int | None) -> list[str]:
        """Table cells: the label, min, median and max tokens, and the numbers of truncated texts and of texts with
        unknown tokens."""
        if not texts:
            return [label, *["-"] * 5]
        unknown = getattr(backbone.tokenizer, "unk_token_id", None)
        lengths, unknown_count = [], 0
        with self.progress.task(f"lengths of {label}", len(texts), "texts") as advance:
            for first in range(0, len(texts), TEXTS):
                part = list(texts[first : first + TEXTS])
                tokens = backbone.text_encoder(part)
                lengths += [len(ids) for ids in tokens]
                unknown_count += sum(unknown in ids for ids in tokens)
                advance(len(part))
        truncated = "-" if limit is None else f"{sum(length > limit for length in lengths):,}"
        shortest_to_longest = [str(min(lengths)), f"{median(lengths):g}", str(max(lengths))]
        return [label, *shortest_to_longest, truncated, "-" if unknown is None else f"{unknown_count:,}"]


def _describe_data(about: Mapping[str, Any], splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """Lines of a data set's description. Counts per split become a table, without rows of zeros."""
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


def _shared_images(recipe: Recipe, splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """Lines that count the images which two splits share."""
    picture_field = next(
        (config.fields[0] for config in recipe.inputs.values() if isinstance(config, FeaturesConfig)), None
    )
    keys = {
        name: {key for example in examples for key in example.shown(picture_field or "") or (example.id,)}
        for name, examples in splits.items()
    }
    names = list(keys)
    yield ""
    for place, first in enumerate(names):
        for second in names[place + 1 :]:
            shared = keys[first] & keys[second]
            yield f"{first} and {second} share {_count_of(shared, 'image') if shared else 'nothing'}"


def _example_lines(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield ""
        yield example.id
        for name, value in resolve(example).inputs.items():
            yield f"  {name}: {', '.join(map(str, value.values)) if isinstance(value, All) else value}"
        for name, value in example.labels.items():
            yield f"  {name} = {value}"
        for target in example.targets:
            yield f"  -> {target}"


def _count_of(things: Iterable[Any], name: str) -> str:
    number = len(list(things))
    return f"{number:,} {name}{'s' * (number != 1)}"
