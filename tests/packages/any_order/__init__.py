"""Texts in any order: a token is predicted from the tokens before it in a drawn order (Yang et al., 2019)."""

from typing import Literal

from pydantic import Field

import mmgen


class Ordered(mmgen.DecodingConfig):
    """The order in which tokens are written."""

    order: Literal["confidence", "left", "random"] = Field("confidence", description="which token is written next")


class AnyOrder(mmgen.GeneratorConfig):
    """Writes one token after another, in any order."""

    type: Literal["any_order"] = "any_order"
    decoding = Ordered
    max_tokens: int = Field(20, ge=2, description="slots of a text, including its end")

    def build(self, backbone):
        from .generator import AnyOrderGenerator

        return AnyOrderGenerator(self, backbone)


@mmgen.hookimpl
def register_generators():
    return [AnyOrder]
