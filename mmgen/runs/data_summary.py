"""The summary of a recipe's data for `mmgen data check`: counts, overlaps of splits, lengths in tokens, examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from statistics import median
from typing import Any

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..data.unread_text import texts_read
from ..parts import Backbone
from ..progress import Progress, table
from ..recipe.tables import Recipe
from ..tensors import All, Example

COUNTED = 1000  # examples of a split whose texts are split into tokens


def summary(recipe: Recipe, datasets: Datasets, progress: Progress) -> Iterator[str]:
    """The lines of the summary; the lengths, which need the encoder, are the last. Raises the errors of reading a split
    and of building the encoder."""
    splits = {}
    for name in datasets.main.splits():
        with progress.task(f"reading {name}", None):
            splits[name] = datasets.main.split(name)
    yield from _counts(datasets.main.describe(), splits)
    yield ""
    all_examples = dict(splits)
    for step, settings in recipe.steps.items():
        for source in datasets.sources(step).values() if settings.data_sets else ():
            label = f"data of step '{step}'{f', {source.name!r}' * (len(settings.data_sets) > 1)}"
            all_examples[label] = source.examples
    for name, examples in all_examples.items():
        yield f"{name}: {len(examples):,} examples, {sum(len(example.targets) for example in examples):,} targets"
    yield from _overlaps(recipe, all_examples)
    for example in islice(splits[recipe.data.train_split], 3):
        yield from _lines(example)
    yield ""
    yield from _lengths(recipe, datasets, all_examples)


def _counts(about: Mapping[str, Any], splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """Lines of a data set's description. Counts per split become a table, without rows of zeros."""
    rows: dict[str, dict[str, int]] = {"examples": {name: len(examples) for name, examples in splits.items()}}
    for name, value in about.items():
        if name in ("published", "examples"):
            continue
        by_split: list[Any] = [value.get(split) for split in splits] if isinstance(value, Mapping) else [None]
        if all(isinstance(count, int) for count in by_split):
            rows[name] = dict(zip(splits, by_split, strict=True))
        elif all(isinstance(counts, Mapping) for counts in by_split):
            for split, counts in zip(splits, by_split, strict=True):
                for what, count in counts.items():
                    rows.setdefault(what, {})[split] = count
        else:
            yield f"{name:<20} {value:,}" if isinstance(value, int) else f"{name:<20} {value}"
    yield ""
    cells = [
        [what.replace("_", " "), *(f"{counts.get(split, 0):,}" for split in splits)]
        for what, counts in rows.items()
        if any(counts.values())
    ]
    yield table([["", *splits], *cells])


def _overlaps(recipe: Recipe, splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """Lines that count the images which two splits share."""
    fields = [config.fields[0] for config in recipe.inputs.values() if isinstance(config, FeaturesConfig)]
    field = fields[0] if fields else ""
    keys = {
        name: {key for example in examples for key in example.shown(field) or (example.id,)}
        for name, examples in splits.items()
    }
    names = list(keys)
    for first, second in ((first, second) for place, first in enumerate(names) for second in names[place + 1 :]):
        shared = len(keys[first] & keys[second])
        yield f"{first} and {second} share {f'{shared:,} images' if shared else 'nothing'}"


def _lengths(recipe: Recipe, datasets: Datasets, splits: Mapping[str, Sequence[Example]]) -> Iterator[str]:
    """The table of lengths in tokens of the first examples, with a row for the targets and each text input of each
    split."""
    encoder, texts = recipe.backbone, list(datasets.texts())
    backbone = encoder.build(texts=texts)
    limit = getattr(recipe.generator, "max_tokens", None)
    rows = [["tokens per text", "min", "median", "max", "truncated", "unknown"]]
    for name, examples in splits.items():
        first = list(islice(examples, COUNTED))
        kinds = {"targets": ([text for example in first for text in example.targets], limit and limit - 1)}
        for input_, config in recipe.inputs.items():
            if not isinstance(config, FeaturesConfig):
                kinds[input_] = texts_read(config, map(resolve, first)), getattr(config, "max_tokens", None)
        rows += [_row(f"{name}: {kind}", backbone, *texts) for kind, texts in kinds.items() if texts[0]]
    yield table(rows)
    yield f"of the first {COUNTED:,} examples of each; truncated: texts longer than max_tokens, whose end is cut off"
    yield "(for targets, the end token counts); unknown: texts with words or characters that the tokenizer lacks"


def _row(label: str, backbone: Backbone, texts: Sequence[str], limit: int | None) -> list[str]:
    """The label, min, median and max tokens, and the numbers of truncated texts and of texts with unknown tokens."""
    unknown, tokens = getattr(backbone.tokenizer, "unk_token_id", None), backbone.text_encoder(texts)
    lengths = [len(ids) for ids in tokens]
    truncated = "-" if limit is None else f"{sum(length > limit for length in lengths):,}"
    count = "-" if unknown is None else f"{sum(unknown in ids for ids in tokens):,}"
    return [label, str(min(lengths)), f"{median(lengths):g}", str(max(lengths)), truncated, count]


def _lines(example: Example) -> Iterator[str]:
    yield f"\n{example.id}"
    for name, value in resolve(example).inputs.items():
        yield f"  {name}: {', '.join(map(str, value.values)) if isinstance(value, All) else value}"
    yield from (f"  {name} = {value}" for name, value in example.labels.items())
    yield from (f"  -> {target}" for target in example.targets)
