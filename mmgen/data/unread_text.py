"""Text that an encoder does not see: the end of a text over `max_tokens`, and unknown words."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..configs import EmbedderConfig
from ..examples import ResolvedExample
from ..parts import Backbone


def texts_read(config: EmbedderConfig, examples: Iterable[ResolvedExample]) -> list[str]:
    """The text that an input reads of each example that has one; several fields are joined, and cut as one text."""
    texts_of_examples = [[*config.texts(example)] for example in examples]
    return [" ".join(texts) for texts in texts_of_examples if texts]


def remarks(name: str, config: EmbedderConfig, backbone: Backbone, example: ResolvedExample) -> Iterator[str]:
    """Remarks on the text of one input of an example: a cut end and unknown words."""
    for text in texts_read(config, [example]):
        tokens, cut, unknown = count_tokens(text, config, backbone)
        if cut:
            yield f"{name} has {tokens:,} tokens; only the first {tokens - cut} are read (max_tokens)"
        if unknown:
            noun = "word or character that is" if unknown == 1 else "words or characters that are"
            yield f"{name} contains {unknown} {noun} not in the tokenizer's vocabulary"


def count_tokens(text: str, config: EmbedderConfig, backbone: Backbone) -> tuple[int, int, int]:
    """The number of tokens of a text, how many are cut off, and how many of the rest are unknown."""
    ids, limit = backbone.encode_text(text), getattr(config, "max_tokens", None)
    unknown_id = getattr(backbone.tokenizer, "unk_token_id", None)
    return len(ids), len(ids[limit:]) if limit else 0, 0 if unknown_id is None else ids[:limit].count(unknown_id)
