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
from ..errors import MmgenError
from ..parts import Backbone
from ..progress import Progress, table
from ..recipe.tables import Recipe
from ..registry import built
from ..tensors import All, Example

TEXTS = 10_000  # texts that are split into tokens at a time


def summary(recipe: Recipe, datasets: Datasets, progress: Progress) -> Iterator[str]:
    """The lines of the summary. Raises the errors of reading a split. Without the encoder, only the lengths in tokens
    are left out."""
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
    yield ""
    yield from _lengths(recipe, datasets, all_examples, progress)
    for example in islice(splits[recipe.data.train_split], 3):
        yield from _lines(example)


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


def _lengths(
    recipe: Recipe, datasets: Datasets, splits: Mapping[str, Sequence[Example]], progress: Progress
) -> Iterator[str]:
    """The table of lengths in tokens, with a row for the targets and each text input of each split."""
    try:
        encoder, texts = recipe.backbone, list(datasets.texts())
        backbone = built(encoder, lambda: encoder.build(texts=texts), "the backbone")
    except MmgenError as error:
        yield f"lengths in tokens need the encoder: {error}"
        return
    limit = getattr(recipe.generator, "max_tokens", None)
    rows = [["tokens per text", "min", "median", "max", "truncated", "unknown"]]
    for name, examples in splits.items():
        texts = [text for example in examples for text in example.targets]
        rows.append(_row_of_lengths(f"{name}: targets", backbone, texts, limit and limit - 1, progress))
        for input_, config in recipe.inputs.items():
            texts = texts_read(config, map(resolve, examples))
            if texts and not isinstance(config, FeaturesConfig):
                most = getattr(config, "max_tokens", None)
                rows.append(_row_of_lengths(f"{name}: {input_}", backbone, texts, most, progress))
    yield table(rows)
    yield "truncated: texts longer than max_tokens, whose end is cut off (for targets, the end token counts)"
    yield "unknown: texts with words or characters that are not in the tokenizer's vocabulary"


def _row_of_lengths(
    label: str, backbone: Backbone, texts: Sequence[str], limit: int | None, progress: Progress
) -> list[str]:
    """Table cells: the label, min, median and max tokens, and the numbers of truncated texts and of texts with unknown
    tokens."""
    if not texts:
        return [label, *["-"] * 5]
    unknown = getattr(backbone.tokenizer, "unk_token_id", None)
    lengths, unknown_count = [], 0
    with progress.task(f"lengths of {label}", len(texts), "texts") as advance:
        for first in range(0, len(texts), TEXTS):
            tokens = backbone.text_encoder(list(texts[first : first + TEXTS]))
            lengths += [len(ids) for ids in tokens]
            unknown_count += sum(unknown in ids for ids in tokens)
            advance(len(tokens))
    truncated = "-" if limit is None else f"{sum(length > limit for length in lengths):,}"
    shortest_to_longest = [str(min(lengths)), f"{median(lengths):g}", str(max(lengths))]
    return [label, *shortest_to_longest, truncated, "-" if unknown is None else f"{unknown_count:,}"]


def _lines(example: Example) -> Iterator[str]:
    yield f"\n{example.id}"
    for name, value in resolve(example).inputs.items():
        yield f"  {name}: {', '.join(map(str, value.values)) if isinstance(value, All) else value}"
    yield from (f"  {name} = {value}" for name, value in example.labels.items())
    yield from (f"  -> {target}" for target in example.targets)
