"""Masked diffusion (Nie et al., 2025): texts are written in a few steps, several tokens at a time, in any order."""

from typing import Literal

from pydantic import Field

import mmgen


class Denoising(mmgen.DecodingConfig):
    """Options of the denoising of texts."""

    steps: int = Field(6, ge=1, le=1000, description="steps in which a text is written")
    order: Literal["confidence", "left", "random"] = Field(
        "confidence", description="which tokens are written first: the surest, those on the left, or any"
    )
    temperature: float = Field(0.0, ge=0, description="divides the logits; 0 takes the most probable token")
    num_return_sequences: int = Field(1, ge=1, le=100, description="texts per example")

    @property
    def samples(self):
        return self.temperature > 0 or self.order == "random"

    def for_texts(self, n):
        yield self.model_copy(update={"num_return_sequences": n, "temperature": self.temperature or float(n > 1)})


class Diffusion(mmgen.GeneratorConfig):
    """Writes texts from [MASK]s only, several tokens in a step."""

    type: Literal["diffusion"] = "diffusion"
    decoding = Denoising
    max_tokens: int = Field(20, ge=2, description="slots of a text, including its end")

    def build(self, backbone):
        from .generator import DiffusionGenerator

        return DiffusionGenerator(self, backbone)


@mmgen.hookimpl
def register_generators():
    return [Diffusion]
