"""Configs of the encoders of transformers: BERT, RoBERTa and related families, and any other that passes the suite.

`encoder` takes the other families by what their classes do (docs/encoders.md). A plugin may subclass `Encoder` for a
family of its own and override the differences: see "Another encoder" in docs/plugins.md.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

import mmgen
from mmgen.configs import PathOrName
from mmgen.errors import DataError

from .published_config import published_config

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedConfig

    from .encoder import EncoderBackbone


ATTENTION = "mmgen"  # the name of `attention.attend` in transformers' AttentionInterface


class Encoder(mmgen.BackboneConfig):
    """Base of all families. With `weights` the encoder is pretrained; without weights it is built with the sizes below,
    and its vocabulary is trained on the data set's training texts.

    Other families subclass this class. They may override the class variables, `backbone_class` and `sizes`.
    """

    supports_gradient_checkpointing: ClassVar[bool] = True
    model_type: ClassVar[str | None] = None  # transformers' name of the family, if it differs from `type`
    dropouts: ClassVar[tuple[str, ...]] = (  # the fields of transformers' config that `dropout` sets
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
    )
    positions_after_padding: ClassVar[bool] = False  # as in RoBERTa: position ids start after the padding index
    caches: ClassVar[bool] = True
    attentions_are_scores: ClassVar[bool] = False  # returns attention scores instead of their softmax
    additive_masks: ClassVar[bool] = True  # eager attention adds its mask to scores; False: it takes a boolean mask
    attention: ClassVar[str | None] = None  # of transformers' AttentionInterface; it takes boolean masks, like "sdpa"
    special_tokens: ClassVar[tuple[str, ...]] = ()  # of a vocabulary that is trained, besides BERT's
    narrows: ClassVar[bool] = False  # its last layer can be computed for predicted slots only

    weights: Annotated[str | None, PathOrName()] = Field(
        None, description="local folder or hub name; without weights nothing is pretrained"
    )
    num_hidden_layers: int = Field(4, ge=1, le=1000, description="layers, without weights")
    hidden_size: int = Field(256, ge=8, le=100_000, description="width of the states, without weights")
    num_attention_heads: int = Field(4, ge=1, description="attention heads, without weights")
    intermediate_size: int | None = Field(
        None,
        ge=8,
        le=1_000_000,
        description="width inside the feed-forward layers, without weights; by default 4 x hidden_size",
    )
    vocab_size: int = Field(
        2000, ge=16, le=10_000_000, description="most word pieces of the trained vocabulary, without weights"
    )
    dropout: float | None = Field(None, ge=0, lt=1, description="overrides the encoder's dropout")
    extra_token_types: int = Field(
        0,
        ge=0,
        le=1000,
        description="additional token types, for inputs that need them; they are trained from scratch",
    )
    extra_positions: int = Field(
        0,
        ge=0,
        le=10_000,
        description="additional positions, for inputs whose slots share one; they are trained from scratch",
    )

    def model_post_init(self, context: Any) -> None:
        if self.weights is None and self.hidden_size % self.num_attention_heads:
            raise ValueError(
                f"num_attention_heads: hidden_size ({self.hidden_size}) must be a multiple of num_attention_heads "
                f"({self.num_attention_heads})"
            )

    def base_model(self):
        return self.weights

    def missing_here(self):
        if self.weights is None or published_config(self.weights) is not None:
            return {}
        from .loading import check_weights

        try:
            check_weights(self)
        except DataError as error:
            return {"weights": str(error).removeprefix("backbone.weights: ")}
        return {}

    def build(self, texts=None, folder: Path | None = None):
        from .loading import build

        return build(self, texts, folder)

    @property
    def transformers_name(self) -> str | None:
        """transformers' name of the family; None if the weights decide."""
        return self.model_type or self.type

    def backbone_class(self) -> "Callable[..., EncoderBackbone]":
        """The class of the backbone. Import it here: the config must not import torch."""
        from .encoder import EncoderBackbone

        return EncoderBackbone

    def where_to_give(self, family: str) -> str:
        """Advice for weights of another family (transformers' name) that were given to this one."""
        return f'set backbone.type = "{family if family in NAMES else "encoder"}"'

    def check_sizes(self, sizes: "PreTrainedConfig") -> None:
        """Raise DataError for a config of transformers that this backbone cannot use; called before anything is
        built."""

    def check_weights(self) -> None:
        values = published_config(self.weights) if self.weights is not None else None
        if values is not None and self.transformers_name != values.get("model_type"):
            from .loading import check_weights

            check_weights(self)

    def check_backbone(self, backbone: "EncoderBackbone") -> None:
        """Raise DataError for a backbone that does not compute what its model does; called once it is built."""

    def sizes(self) -> dict[str, Any]:
        """Extra fields of transformers' config for an encoder without weights: name -> value. They override the values
        of the usual settings (num_hidden_layers, hidden_size, ...)."""
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
    """RoBERTa with pre-layer normalisation (Ott et al., 2019)."""

    type: Literal["roberta-prelayernorm"] = "roberta-prelayernorm"
    positions_after_padding: ClassVar[bool] = True


class Data2VecText(Encoder):
    """The text encoder of Data2Vec (Baevski et al., 2022)."""

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
    """ALBERT (Lan et al., 2020)."""

    type: Literal["albert"] = "albert"
    supports_gradient_checkpointing: ClassVar[bool] = False
    attention: ClassVar[str | None] = ATTENTION


class DistilBert(Encoder):
    """DistilBERT (Sanh et al., 2019)."""

    type: Literal["distilbert"] = "distilbert"
    attention: ClassVar[str | None] = ATTENTION


class SqueezeBert(Encoder):
    """SqueezeBERT (Iandola et al., 2020); encodes without a cache."""

    type: Literal["squeezebert"] = "squeezebert"
    supports_gradient_checkpointing: ClassVar[bool] = False
    caches: ClassVar[bool] = False
    attentions_are_scores: ClassVar[bool] = True


class AnyEncoder(Encoder):
    """Any masked-LM encoder of transformers whose attention mmgen's function reaches: ModernBERT, EuroBERT, GTE,
    NomicBERT and others. The class of the encoder decides, not its name; see "Encoders" in the docs."""

    type: Literal["encoder"] = "encoder"
    attention: ClassVar[str | None] = ATTENTION
    dropouts: ClassVar[tuple[str, ...]] = (
        "hidden_dropout_prob",
        "attention_probs_dropout_prob",
        "dropout",
        "attention_dropout",
        "embedding_dropout",
        "mlp_dropout",
    )

    family: str = Field(
        "modernbert", description="transformers' name of the family, for an encoder without weights (`modernbert`)"
    )

    @property
    def transformers_name(self) -> str | None:
        return self.family if self.weights is None else None

    def check_weights(self) -> None:
        if self.weights is not None:
            super().check_weights()
        else:
            from .loading import check_family

            check_family(self, self.vocab_size, 0)

    def check_sizes(self, sizes: "PreTrainedConfig") -> None:
        from .reach import unreachable

        if reason := unreachable(sizes):
            name = sizes.model_type
            advice = f'set backbone.type = "{name}"' if name in (*NAMES, *SEEING) else "choose another encoder"
            raise DataError(f"{self._place} mmgen cannot use the encoder '{name}': {reason}; {advice}")

    def check_backbone(self, backbone: "EncoderBackbone") -> None:
        from .any_encoder import difference_from_source

        if reason := difference_from_source(backbone):
            name = backbone.model.config.model_type
            raise DataError(f"{self._place} mmgen cannot use the encoder '{name}': {reason}; choose another encoder")

    @property
    def _place(self) -> str:
        return "backbone.family:" if self.weights is None else f"backbone.weights: '{self.weights}':"

    def backbone_class(self) -> "Callable[..., EncoderBackbone]":
        from .any_encoder import AnyEncoderBackbone

        return AnyEncoderBackbone


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
SEEING = ("modernvbert", "ultravbert")  # backbones of mmgen_inputs.pictures
NAMES = frozenset(family.model_fields["type"].default for family in FAMILIES)


@mmgen.hookimpl
def register_backbones():
    return [*FAMILIES, AnyEncoder]
