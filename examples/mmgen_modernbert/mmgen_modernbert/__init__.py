"""ModernBERT as a backbone: mmgen's own encoders, with the masks, sizes and head of this family."""

from typing import ClassVar, Literal

import mmgen
from mmgen_encoders import Encoder
from pydantic import Field, model_validator

MMGEN_API = 3


class ModernBert(Encoder):
    """ModernBERT (Warner et al., 2024); encodes without a cache."""

    type: Literal["modern-bert"] = "modern-bert"
    model_type: ClassVar[str] = "modernbert"
    caches: ClassVar[bool] = False
    dropouts: ClassVar[tuple[str, ...]] = ("embedding_dropout", "mlp_dropout", "attention_dropout")

    window: int = Field(128, ge=2, description="positions that a layer of the narrow kind looks over, without weights")
    wide_every: int = Field(3, ge=1, description="every how many layers one looks over the whole row, without weights")

    @model_validator(mode="after")
    def even_window(self):
        if self.window % 2:
            raise ValueError(f"window ({self.window}) must be even: half of it lies on either side")
        return self

    def sizes(self):
        kinds = [
            "sliding_attention" if layer % self.wide_every else "full_attention"
            for layer in range(self.num_hidden_layers)
        ]
        return {"layer_types": kinds, "local_attention": self.window}

    def backbone_class(self):
        from .backbone import ModernBertBackbone

        return ModernBertBackbone


@mmgen.hookimpl
def register_backbones():
    return [ModernBert]
