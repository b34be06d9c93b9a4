"""BERT with low-rank adapters (Hu et al., 2022) by peft: mmgen's own encoder, of which only the adapters train."""

from typing import Literal

import mmgen
from mmgen_encoders import Bert
from pydantic import Field

MMGEN_API = 4


class LoraBert(Bert):
    """BERT whose own weights are frozen; low-rank adapters of its layers train."""

    type: Literal["lora-bert"] = "lora-bert"
    model_type = "bert"

    rank: int = Field(8, ge=1, description="rank of the adapters")
    alpha: float = Field(16, gt=0, description="the adapters are scaled by alpha / rank")
    adapts: tuple[str, ...] = Field(("query", "value"), min_length=1, description="names of the layers with an adapter")

    def backbone_class(self):
        from .backbone import LoraBackbone

        return LoraBackbone


@mmgen.hookimpl
def register_backbones():
    return [LoraBert]
