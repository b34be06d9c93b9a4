"""Baselines without attention: a recurrent network, and a backbone that does nothing, for a generator that does
everything."""

from typing import ClassVar, Literal

from pydantic import Field

import mmgen


class Gru(mmgen.BackboneConfig):
    """A recurrent network over words; it reads from left to right."""

    type: Literal["gru"] = "gru"
    mixes: ClassVar = "row"
    hidden_size: int = Field(64, ge=1, description="width of the states")
    vocab_size: int = Field(2000, ge=16, description="most word pieces")

    def build(self, texts=None, folder=None):
        from .backbone import GruBackbone

        return GruBackbone.built(self, texts, folder)


class Alone(Gru):
    """Embedded words as they are."""

    type: Literal["alone"] = "alone"
    mixes: ClassVar = "nothing"

    def build(self, texts=None, folder=None):
        from .backbone import AloneBackbone

        return AloneBackbone.built(self, texts, folder)


@mmgen.hookimpl
def register_backbones():
    return [Gru, Alone]
