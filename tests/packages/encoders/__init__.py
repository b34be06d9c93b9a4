"""Encoders of other families over `mmgen_encoders`."""

from typing import ClassVar, Literal

from mmgen_encoders import Encoder

import mmgen


class EuroBert(Encoder):
    """EuroBERT (Boizard et al., 2025); encodes without a cache."""

    type: Literal["euro-bert"] = "euro-bert"
    model_type: ClassVar[str] = "eurobert"
    caches: ClassVar[bool] = False
    dropouts: ClassVar[tuple[str, ...]] = ("attention_dropout",)

    def sizes(self):
        heads = self.num_attention_heads
        return {"num_key_value_heads": heads, "head_dim": self.hidden_size // heads}


class CachedEuroBert(EuroBert):
    """EuroBERT with a cache, which transformers' code of it does not have."""

    type: Literal["euro-bert-cached"] = "euro-bert-cached"
    caches: ClassVar[bool] = True
    attention: ClassVar[str] = "cached_sdpa"

    def backbone_class(self):
        from .cached import register

        return register(self.attention)


class DebertaV2(Encoder):
    """DeBERTa-v2 and v3 (He et al., 2021); encodes without a cache."""

    type: Literal["deberta"] = "deberta"
    model_type: ClassVar[str] = "deberta-v2"
    caches: ClassVar[bool] = False
    additive_masks: ClassVar[bool] = False

    def sizes(self):
        return {"relative_attention": True, "pos_att_type": ["c2p", "p2c"], "position_biased_input": False}

    def backbone_class(self):
        from .deberta import DebertaBackbone

        return DebertaBackbone


@mmgen.hookimpl
def register_backbones():
    return [EuroBert, CachedEuroBert, DebertaV2]
