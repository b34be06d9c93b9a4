"""Warns of text that an encoder does not see: the end of a text over `max_tokens`, and unknown words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from ..configs import EmbedderConfig
from ..model import Model
from ..parts import Backbone
from ..progress import Progress
from ..recipe.tables import Recipe
from ..tensors import ResolvedExample
from .datasets import Datasets
from .seeds import resolve

MAX_EXAMPLES = 1000  # per source
UNKNOWN_SHARE = 0.1  # share of texts with unknown words that is worth a line


def texts_read(config: EmbedderConfig, examples: Iterable[ResolvedExample]) -> list[str]:
    """The text that an input reads of each example that has one; several fields are joined, and cut as one text."""
    texts_of_examples = [[*config.texts(example)] for example in examples]
    return [" ".join(texts) for texts in texts_of_examples if texts]


def remarks(name: str, config: EmbedderConfig, backbone: Backbone, example: ResolvedExample) -> Iterator[str]:
    """Remarks on the text of one input of an example: a cut end and unknown words."""
    for text in texts_read(config, [example]):
        tokens, cut, unknown = _count_tokens(text, config, backbone)
        if cut:
            yield f"{name} has {tokens:,} tokens; only the first {tokens - cut} are read (max_tokens)"
        if unknown:
            noun = "word or character that is" if unknown == 1 else "words or characters that are"
            yield f"{name} contains {unknown} {noun} not in the tokenizer's vocabulary"


def warn_of_unread_text(
    recipe: Recipe, model: Model, datasets: Datasets, steps: Sequence[str], progress: Progress
) -> None:
    """Logs how many input texts of the first examples of every source are cut or have unknown words."""
    lines: dict[str, None] = {}
    for source in (source for step in steps for source in datasets.sources(step).values()):
        examples = [resolve(example) for example in islice(source.examples, MAX_EXAMPLES)]
        for name in recipe.required_inputs(source.inputs, source.objectives):
            config = recipe.inputs[name]
            texts = texts_read(config, examples)
            counts = [_count_tokens(text, config, model.backbone) for text in texts]
            cut, unknown = (sum(bool(count[index]) for count in counts) for index in (1, 2))
            share = f"of {'the first ' * (len(examples) == MAX_EXAMPLES)}{len(texts):,} texts"
            if cut:
                lines[f"{name}: {cut:,} {share} are longer than max_tokens and are cut"] = None
            if unknown > UNKNOWN_SHARE * len(texts):
                words = "words or characters that are not in the tokenizer's vocabulary"
                lines[f"{name}: {unknown:,} {share} contain {words}"] = None
    for line in lines:
        progress.say(line)


def _count_tokens(text: str, config: EmbedderConfig, backbone: Backbone) -> tuple[int, int, int]:
    """The number of tokens of a text, how many are cut off, and how many of the rest are unknown."""
    ids, limit = backbone.encode_text(text), getattr(config, "max_tokens", None)
    unknown_id = getattr(backbone.tokenizer, "unk_token_id", None)
    return len(ids), len(ids[limit:]) if limit else 0, 0 if unknown_id is None else ids[:limit].count(unknown_id)
