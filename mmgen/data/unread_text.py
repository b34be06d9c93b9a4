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
    limit, unknown_id = getattr(config, "max_tokens", None), getattr(backbone.tokenizer, "unk_token_id", None)
    for text in texts_read(config, [example]):
        ids = backbone.encode_text(text)
        if limit and len(ids) > limit:
            yield f"{name} has {len(ids):,} tokens; only the first {limit} are read (max_tokens)"
        if unknown := sum(id_ == unknown_id for id_ in ids[:limit]):
            noun = "word or character that is" if unknown == 1 else "words or characters that are"
            yield f"{name} contains {unknown} {noun} not in the tokenizer's vocabulary"
