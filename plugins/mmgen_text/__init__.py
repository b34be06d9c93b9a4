"""Text as an input: its tokens through the backbone's own word embeddings."""

from typing import Literal

from pydantic import Field, model_validator

import mmgen


class Text(mmgen.EmbedderConfig):
    """Captions, or any text, as the backbone's own word embeddings; nothing of its own to learn. Several fields
    (`reads`) are one text, one behind the other."""

    type: Literal["text"] = "text"
    hides = "words"

    max_tokens: int = Field(
        64, ge=0, description="longer texts are cut; 0, beside append_mask, leaves the [MASK] alone"
    )
    token_type: int = Field(0, ge=0, description="token type of its words; 1 for the second of two texts, as in BERT")
    append_mask: bool = Field(
        False, description="a last [MASK] behind the text, whose state answers it (VisualBERT and VL-BERT, for VQA)"
    )

    def build(self, backbone):
        from .embedder import TextEmbedder

        return TextEmbedder(self, backbone)

    def texts(self, example):
        if not self.max_tokens:
            return ()
        values = (example.inputs.get(field, ()) for field in self.reads)
        return tuple(text for value in values for text in ((value,) if isinstance(value, str) else value))

    @model_validator(mode="after")
    def _reads_something(self):
        if not self.max_tokens and not self.append_mask:
            raise ValueError("max_tokens = 0 leaves nothing to read; give it more, or append_mask = true")
        return self


@mmgen.hookimpl
def register_embedders():
    return [Text]
