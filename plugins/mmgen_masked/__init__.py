"""The config of BERT-gen: generates text with a masked-language-model encoder, one [MASK] after the other."""

from typing import Literal

from pydantic import Field

import mmgen


class Masked(mmgen.GeneratorConfig):
    """The masked-decoding generator of BERT-gen (bertgen, section 3.2)."""

    type: Literal["masked"] = "masked"
    query_labels = ("prompt", "avoid")
    max_tokens: int = Field(20, ge=2, description="tokens per text, including the end token; longer targets are cut")

    def build(self, backbone):
        from .generator import MaskedGenerator

        return MaskedGenerator(self, backbone)


@mmgen.hookimpl
def register_generators():
    return [Masked]
