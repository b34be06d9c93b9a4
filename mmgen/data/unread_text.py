"""Unread: what an encoder does not get of a text: its end, where it is cut, and words that the vocabulary has not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..configs import EmbedderConfig
from ..model import Model
from ..parts import Backbone
from ..progress import Progress
from ..recipe.tables import GENERATOR, Recipe
from ..tensors import Example
from .datasets import Datasets
from .seeds import resolve

LOOKED_AT = 1000  # examples of a step
MANY = 0.1  # share of texts with unknown words that is worth a line


def remarks(name: str, config: EmbedderConfig, backbone: Backbone, example: Example) -> Iterator[str]:
    """What is not read of the texts of one input of an example."""
    for text in config.texts(example):
        tokens, cut, unknown = _looked_at(text, config, backbone)
        if cut:
            yield f"{name} has {tokens:,} tokens, of which the first {tokens - cut} are read (max_tokens)"
        if unknown:
            what = "word or character that is" if unknown == 1 else "words or characters that are"
            yield f"{name} contains {unknown} {what} not in the tokenizer's vocabulary"


def warn_of_unread_text(
    recipe: Recipe, model: Model, datasets: Datasets, steps: Sequence[str], progress: Progress
) -> None:
    """Lines about the texts that the steps are going to learn, and about those that they read, as far as their first
    examples show."""
    _warn_of_cut(model, datasets, steps, progress)
    told: dict[str, None] = {}
    for source in (source for step in steps for source in datasets.sources(step).values()):
        examples = [resolve(example) for example in source.examples[:LOOKED_AT]]
        for name in recipe.asked(source.inputs, source.objectives):
            config = recipe.inputs[name]
            texts = [text for example in examples for text in config.texts(example)]
            found = [_looked_at(text, config, model.backbone) for text in texts]
            cut, unknown = (sum(bool(each[place]) for each in found) for place in (1, 2))
            share = f"of {'the first ' * (len(examples) == LOOKED_AT)}{len(texts):,} texts"
            if cut:
                told[f"{name}: {cut:,} {share} are over max_tokens, and lose their end"] = None
            if unknown > MANY * len(texts):
                told[f"{name}: {unknown:,} {share} hold words or signs that the encoder's vocabulary has not"] = None
    for line in told:
        progress.say(line)


def _warn_of_cut(model: Model, datasets: Datasets, steps: Sequence[str], progress: Progress) -> None:
    """Of targets, all that are learnt."""
    sources = [source for step in steps for source in datasets.sources(step).values()]
    for examples in {id(each.examples): each.examples for each in sources if GENERATOR in each.objectives}.values():
        cut, total = model.generator.reader.cut(examples), sum(len(example.targets) for example in examples)
        if cut:
            progress.say(
                f"{cut} of {total} targets are longer than max_tokens = {model.generator.max_tokens} (their end "
                "counts) and are cut"
            )


def _looked_at(text: str, config: EmbedderConfig, backbone: Backbone) -> tuple[int, int, int]:
    """Tokens of a text, how many of them are cut off, and how many of those that are left are unknown."""
    ids, limit = backbone.encode_text(text), getattr(config, "max_tokens", None)
    strange = getattr(backbone.tokenizer, "unk_token_id", None)
    return len(ids), len(ids[limit:]) if limit else 0, 0 if strange is None else ids[:limit].count(strange)
