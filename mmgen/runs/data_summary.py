"""A look at a recipe's data before anything is learnt from it: counts, gaps, overlaps, lengths, examples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from statistics import median

from ..configs import FeaturesConfig
from ..data.datasets import Datasets
from ..data.seeds import resolve
from ..errors import MmgenError
from ..features.multi_file import open_store
from ..parts import Backbone
from ..recipe.tables import Recipe
from ..tensors import Example


def summarise(recipe: Recipe) -> Iterator[str]:
    """Lines to read. Raises what building the data set or the tokenizer raises."""
    datasets = Datasets(recipe)
    dataset = datasets.main
    splits = {name: dataset.split(name) for name in dataset.splits()}
    for name, value in dataset.describe().items():
        if name != "published":
            yield f"{name:<20} {value}"
    yield ""
    backbone = recipe.backbone.build(texts=list(datasets.texts()))
    for name, examples in splits.items():
        yield from _split(recipe, backbone, name, examples, recipe.inputs)
    own = {}
    for step, each in recipe.steps.items():
        if each.data is not None:
            own[name := f"what '{step}' learns from"] = examples = datasets.learnt(step)
            yield from _split(recipe, backbone, name, examples, each.inputs)
    yield from _overlaps(recipe, splits | own)
    yield from _shown(splits[recipe.data.train][:3])


def _split(
    recipe: Recipe, backbone: Backbone, name: str, examples: Sequence[Example], inputs: Iterable[str]
) -> Iterator[str]:
    """Of a split, and of those inputs that are read from it."""
    questions = [text for example in examples for text in example.targets]
    lengths = _lengths(backbone, questions)
    limit = recipe.generator.max_tokens if hasattr(recipe.generator, "max_tokens") else None
    cut = sum(length + 1 > limit for length in lengths) if limit else 0
    yield f"{name}: {len(examples)} examples, {len(questions)} targets"
    yield f"  target tokens       {_spread(lengths)}" + (
        f"; {cut} are over max_tokens = {limit} with their end and will be cut" if cut else ""
    )
    for input_, config in recipe.inputs.items():
        if input_ not in inputs:
            continue
        missing = sum(any(example.lacks(field) for field in config.reads) for example in examples)
        values = [value for example in examples for value in map(resolve(example).inputs.get, config.reads)]
        if missing:
            yield f"  {input_:<19} missing for {missing} examples"
        if isinstance(config, FeaturesConfig):
            yield from _features(input_, config, [value for value in values if isinstance(value, str)])
        else:
            yield (
                f"  {input_ + ' tokens':<19} "
                f"{_spread(_lengths(backbone, [value for value in values if isinstance(value, str)]))}"
            )


def _features(input_: str, config: FeaturesConfig, keys: list[str]) -> Iterator[str]:
    if config.features is None:
        yield (
            f"  {input_:<19} {len(set(keys))} images; features will be made by '{config.extractor.type}'"
            if config.extractor
            else f"  {input_:<19} neither features nor an extractor is named"
        )
        return
    try:
        store = open_store(config.features)
        absent = [key for key in dict.fromkeys(keys) if key not in store]
        empty = sum(key in store and not store.count(key) for key in dict.fromkeys(keys))
        told_empty = f", {empty} are without regions" if empty else ""
        told = f", {len(absent)} have none ({', '.join(absent[:3])})" if absent else ""
        yield (
            f"  {input_:<19} {len(set(keys)) - len(absent)} of {len(set(keys))} images have features in "
            f"{config.features}{told}{told_empty}"
        )
    except MmgenError as error:
        yield f"  {input_:<19} {error}"


def _overlaps(recipe: Recipe, splits: dict[str, Sequence[Example]]) -> Iterator[str]:
    """Images that are in two splits."""
    pictured = next((config.reads[0] for config in recipe.inputs.values() if isinstance(config, FeaturesConfig)), None)
    keys = {
        name: {example.inputs.get(pictured, example.id) if pictured else example.id for example in examples}
        for name, examples in splits.items()
    }
    names = list(keys)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            shared = len(keys[one] & keys[other])
            yield f"{one} and {other} share {shared} images" if shared else f"{one} and {other} share nothing"


def _shown(examples: Sequence[Example]) -> Iterator[str]:
    for example in examples:
        yield ""
        yield example.id
        for name, value in resolve(example).inputs.items():
            yield f"  {name}: {value}"
        for target in example.targets:
            yield f"  -> {target}"


def _lengths(backbone: Backbone, texts: list[str]) -> list[int]:
    return (
        [len(ids) for ids in backbone.tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"]]
        if texts
        else []
    )


def _spread(lengths: list[int]) -> str:
    return f"{min(lengths)} to {max(lengths)}, median {median(lengths):g}" if lengths else "none"
