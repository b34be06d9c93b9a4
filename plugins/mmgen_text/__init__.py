"""The config of text inputs: tokens through the backbone's word embeddings."""

from typing import Literal

from pydantic import Field, model_validator

import mmgen


class Text(mmgen.EmbedderConfig):
    """Captions or any other text as the backbone's word embeddings; has no parameters. Several fields (`fields`) are
    joined into one text."""

    type: Literal["text"] = "text"
    hides = "words"

    max_tokens: int = Field(64, ge=0, description="longer texts are cut; with append_mask, 0 leaves only the [MASK]")
    token_type: int = Field(0, ge=0, description="token type of the text; 1 for the second of two texts, as in BERT")
    append_mask: bool = Field(
        False, description="append a [MASK] to the text, whose state gives the answer (VisualBERT and VL-BERT, for VQA)"
    )

    def build(self, backbone):
        from .embedder import TextEmbedder

        return TextEmbedder(self, backbone)

    def texts(self, example):
        if not self.max_tokens:
            return ()
        values = (example.inputs.get(field, ()) for field in self.fields)
        return tuple(text for value in values for text in ((value,) if isinstance(value, str) else value))

    @model_validator(mode="after")
    def _reads_something(self):
        if not self.max_tokens and not self.append_mask:
            raise ValueError("max_tokens = 0 leaves an empty text; set max_tokens > 0, or append_mask = true")
        return self


@mmgen.hookimpl
def register_embedders():
    return [Text]
