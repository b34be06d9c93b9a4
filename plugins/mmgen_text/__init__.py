"""Text as an input: its tokens through the backbone's own word embeddings."""

from typing import Literal

from pydantic import Field

import mmgen


class Text(mmgen.EmbedderConfig):
    """Captions, or any text, as the backbone's own word embeddings; nothing of its own to learn."""

    type: Literal["text"] = "text"
    hides = "words"

    max_tokens: int = Field(64, ge=1, description="longer texts are cut")
    token_type: int = Field(0, ge=0, description="token type of its words; 1 for the second of two texts, as in BERT")
    append_mask: bool = Field(
        False, description="a last [MASK] behind the text, whose state answers it (VisualBERT and VL-BERT, for VQA)"
    )

    def build(self, backbone):
        from .embedder import TextEmbedder

        return TextEmbedder(self, backbone)

    def texts(self, example):
        value = example.inputs.get(self.reads[0], ())
        return (value,) if isinstance(value, str) else value


@mmgen.hookimpl
def register_embedders():
    return [Text]
