"""Masked-language-model encoders of transformers: BERT, RoBERTa, and their relatives that pass the backbone suite.

A plugin of your own may subclass `Encoder` for another family, and override what is different there: see "Another
encoder" in docs/plugins.md. ModernBERT (examples/mmgen_modernbert) wants masks of its own, one for layers that look
near. DeBERTa would want its relative positions counted from `Slots.positions`. Not tried that way, and not exact as
they are: MPNet, RoFormer, Nystromformer, ConvBERT.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

import mmgen
from mmgen.configs import PathOrName

if TYPE_CHECKING:
    from collections.abc import Callable

    from .encoder import EncoderBackbone


class Encoder(mmgen.BackboneConfig):
    """What all families share. With `weights` the encoder is pretrained; without, it is built on the spot from the
    sizes below and its vocabulary is learnt from the data set's training texts.

    Other families subclass it. What may be overridden: the class variables, `backbone_class` and `sizes`.
    """

    model_type: ClassVar[str | None] = None  # transformers' name of the family, where `type` is another
    dropouts: ClassVar[tuple[str, ...]] = (  # those fields of transformers' config that `dropout` sets
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
    )
    positions_after_padding: ClassVar[bool] = False  # RoBERTa's: position ids start after the padding index
    caches: ClassVar[bool] = True
    attentions_are_scores: ClassVar[bool] = False  # hands out attention scores instead of their softmax
    narrows: ClassVar[bool] = False  # its last layer can work for the slots alone whose states are asked for

    weights: Annotated[str | None, PathOrName()] = Field(
        None, description="a local folder or a hub name; without it nothing is pretrained"
    )
    layers: int = Field(4, ge=1, le=1000, description="layers, without weights")
    width: int = Field(256, ge=8, le=100_000, description="width of the states, without weights")
    heads: int = Field(4, ge=1, description="attention heads, without weights")
    intermediate: int | None = Field(
        None,
        ge=8,
        le=1_000_000,
        description="width inside the feed-forward layers, without weights; by default 4 x width",
    )
    vocabulary: int = Field(
        2000, ge=16, le=10_000_000, description="most word pieces to learn from the texts, without weights"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="overrides the encoder's own dropout")
    extra_types: int = Field(
        0,
        ge=0,
        le=1000,
        description="token types besides the encoder's own, for inputs that ask for them; they are learnt from scratch",
    )
    extra_positions: int = Field(
        0,
        ge=0,
        le=10_000,
        description="positions besides those of the sequence, for inputs whose slots share one; "
        "they are learnt from scratch",
    )

    def model_post_init(self, context: Any) -> None:
        if self.weights is None and self.width % self.heads:
            raise ValueError(f"heads: width ({self.width}) must be a multiple of heads ({self.heads})")

    def build(self, texts=None, folder: Path | None = None):
        from .loading import build

        return build(self, texts, folder)

    @property
    def family(self) -> str:
        """transformers' name of the family."""
        return self.model_type or self.type

    def backbone_class(self) -> "Callable[..., EncoderBackbone]":
        """The class of the backbone. Import it here: the config must not import torch."""
        from .encoder import EncoderBackbone

        return EncoderBackbone

    def where_to_give(self, family: str) -> str:
        """What to do with weights of another family, by transformers' name, that were given to this one."""
        return f'set backbone.type = "{family}"'

    def sizes(self) -> dict[str, Any]:
        """Fields of transformers' config that this family has besides the usual ones, for an encoder that is built on
        the spot: name -> value. What is here wins over what the usual settings (layers, width, ...) give."""
        return {}


class Bert(Encoder):
    """BERT (Devlin et al., 2019)."""

    type: Literal["bert"] = "bert"
    narrows: ClassVar[bool] = True


class Roberta(Encoder):
    """RoBERTa (Liu et al., 2019)."""

    type: Literal["roberta"] = "roberta"
    narrows: ClassVar[bool] = True
    positions_after_padding: ClassVar[bool] = True


class XlmRoberta(Encoder):
    """XLM-RoBERTa (Conneau et al., 2020)."""

    type: Literal["xlm-roberta"] = "xlm-roberta"
    narrows: ClassVar[bool] = True
    positions_after_padding: ClassVar[bool] = True


class XlmRobertaXl(Encoder):
    """XLM-RoBERTa-XL (Goyal et al., 2021)."""

    type: Literal["xlm-roberta-xl"] = "xlm-roberta-xl"
    positions_after_padding: ClassVar[bool] = True


class Camembert(Encoder):
    """CamemBERT (Martin et al., 2020)."""

    type: Literal["camembert"] = "camembert"
    narrows: ClassVar[bool] = True
    positions_after_padding: ClassVar[bool] = True


class RobertaPreLayerNorm(Encoder):
    """RoBERTa with the layer norm first (Ott et al., 2019)."""

    type: Literal["roberta-prelayernorm"] = "roberta-prelayernorm"
    positions_after_padding: ClassVar[bool] = True


class Data2VecText(Encoder):
    """Data2Vec, its text encoder (Baevski et al., 2022)."""

    type: Literal["data2vec-text"] = "data2vec-text"
    narrows: ClassVar[bool] = True
    positions_after_padding: ClassVar[bool] = True


class Electra(Encoder):
    """ELECTRA's generator (Clark et al., 2020); its word embeddings may be narrower than its states."""

    type: Literal["electra"] = "electra"
    narrows: ClassVar[bool] = True


class Ernie(Encoder):
    """ERNIE (Sun et al., 2019)."""

    type: Literal["ernie"] = "ernie"
    narrows: ClassVar[bool] = True


class MegatronBert(Encoder):
    """Megatron-BERT (Shoeybi et al., 2019)."""

    type: Literal["megatron-bert"] = "megatron-bert"


class Albert(Encoder):
    """ALBERT (Lan et al., 2020); encodes without a cache."""

    type: Literal["albert"] = "albert"
    caches: ClassVar[bool] = False


class DistilBert(Encoder):
    """DistilBERT (Sanh et al., 2019); encodes without a cache."""

    type: Literal["distilbert"] = "distilbert"
    caches: ClassVar[bool] = False


class SqueezeBert(Encoder):
    """SqueezeBERT (Iandola et al., 2020); encodes without a cache."""

    type: Literal["squeezebert"] = "squeezebert"
    caches: ClassVar[bool] = False
    attentions_are_scores: ClassVar[bool] = True


FAMILIES = [
    Bert,
    Roberta,
    XlmRoberta,
    XlmRobertaXl,
    Camembert,
    RobertaPreLayerNorm,
    Data2VecText,
    Electra,
    Ernie,
    MegatronBert,
    Albert,
    DistilBert,
    SqueezeBert,
]


@mmgen.hookimpl
def register_backbones():
    return FAMILIES
