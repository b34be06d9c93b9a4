"""Text that an encoder does not see: the end of a text over `max_tokens`, and unknown words."""

from __future__ import annotations

from collections.abc import Iterator

from ..configs import EmbedderConfig
from ..examples import ResolvedExample
from ..parts import Backbone


def remarks(name: str, config: EmbedderConfig, backbone: Backbone, example: ResolvedExample) -> Iterator[str]:
    """Remarks on the text of one input of an example, where several fields are one text: a cut end, unknown words."""
    yield from remarks_on_text(name, " ".join(config.texts(example)), getattr(config, "max_tokens", None), backbone)


def remarks_on_text(name: str, text: str, limit: int | None, backbone: Backbone) -> Iterator[str]:
    """Remarks on a text of which only `limit` tokens are read."""
    ids, unknown_id = backbone.encode_text(text), getattr(backbone.tokenizer, "unk_token_id", None)
    if limit and len(ids) > limit:
        yield f"{name} has {len(ids):,} tokens; only the first {limit} are read (max_tokens)"
    if unknown := sum(id_ == unknown_id for id_ in ids[:limit]):
        noun = "word or character that is" if unknown == 1 else "words or characters that are"
        yield f"{name} contains {unknown} {noun} not in the tokenizer's vocabulary"
