"""Next tokens without [MASK]: what an encoder's generator would be if it were a language model's."""

from typing import Literal

from pydantic import Field

import mmgen


class Causal(mmgen.GeneratorConfig):
    """Next-token prediction: every slot of a target predicts the one after it."""

    type: Literal["causal"] = "causal"
    max_tokens: int = Field(20, ge=2, description="tokens of a text, its end included; longer targets are cut")

    def build(self, backbone):
        from .generator import CausalGenerator

        return CausalGenerator(self, backbone)

    def refuses(self, decoding):
        if decoding.num_beam_groups > 1:
            return {"num_beam_groups": "the generator 'causal' has no diverse beam search; leave it at 1"}
        return {}


@mmgen.hookimpl
def register_generators():
    return [Causal]
