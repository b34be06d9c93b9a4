"""The config of the causal generator: next-token prediction without [MASK], as in a language model."""

from typing import Literal

from pydantic import Field

import mmgen


class Causal(mmgen.GeneratorConfig):
    """Next-token prediction: every slot of a target predicts the next one."""

    type: Literal["causal"] = "causal"
    query_labels = ("prompt", "avoid")
    backbones = frozenset({"visible", "row"})  # one of "row" must read from left to right, as `needs` says
    max_tokens: int = Field(20, ge=2, description="tokens per text, including the end token; longer targets are cut")

    def build(self, backbone):
        from .generator import CausalGenerator

        return CausalGenerator(self, backbone)


@mmgen.hookimpl
def register_generators():
    return [Causal]
