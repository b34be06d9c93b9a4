"""Configs of the encoders of transformers: BERT, RoBERTa, and any other masked-language model.

`encoder` takes the other families by what their classes do (docs/guides/encoders.md). A plugin may subclass `Encoder`
for a family of its own and override the differences: see "Another encoder" in docs/extend/contracts.md.
"""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal

from pydantic import Field

import mmgen
from mmgen.configs import PathOrName
from mmgen.errors import DataError
from mmgen.files import not_downloaded

if TYPE_CHECKING:
    from collections.abc import Callable

    from transformers import PreTrainedConfig

    from .encoder import EncoderBackbone


class Encoder(mmgen.BackboneConfig):
    """Base of all families. With `weights` the encoder is pretrained; without weights it is built with the sizes below,
    and its vocabulary is trained on the data set's training texts.

    Other families subclass this class. They may override the class variables, `backbone_class` and `sizes`.
    """

    supports_gradient_checkpointing: ClassVar[bool] = True
    model_type: ClassVar[str | None] = None  # transformers' name of the family, if it differs from `type`
    special_tokens: ClassVar[tuple[str, ...]] = ()  # of a vocabulary that is trained, besides BERT's
    is_tried: ClassVar[bool] = False  # once built, it is compared with the model that it holds

    weights: Annotated[str | None, PathOrName()] = Field(
        None, description="local folder, or hub name, also name@revision; without weights nothing is pretrained"
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
        return {"weights": "" if self.weights is None else not_downloaded(self.weights)}

    @property
    def subject(self) -> str:
        """Where an error of the encoder is, for its message."""
        return f"backbone '{self.type}'" if self.weights is None else f"backbone.weights: '{self.weights}'"

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

    def check_sizes(self, sizes: "PreTrainedConfig") -> None:
        """Raise DataError for a config of transformers that this backbone cannot use; called before anything is
        built."""

    def sizes(self) -> dict[str, Any]:
        """Extra fields of transformers' config for an encoder without weights: name -> value. They override the values
        of the usual settings (num_hidden_layers, hidden_size, ...)."""
        return {}


class Bert(Encoder):
    """BERT (Devlin et al., 2019)."""

    type: Literal["bert"] = "bert"


class Roberta(Encoder):
    """RoBERTa (Liu et al., 2019)."""

    type: Literal["roberta"] = "roberta"


class AnyEncoder(Encoder):
    """Any masked-LM encoder of transformers whose attention mmgen's function reaches: ELECTRA, ALBERT, DistilBERT,
    XLM-RoBERTa, ModernBERT, EuroBERT and others. The class of the encoder decides, not its name; see "Encoders" in
    the docs."""

    type: Literal["encoder"] = "encoder"
    is_tried: ClassVar[bool] = True

    family: str = Field(
        "modernbert", description="transformers' name of the family, for an encoder without weights (`modernbert`)"
    )

    @property
    def transformers_name(self) -> str | None:
        return self.family if self.weights is None else None

    def check_sizes(self, sizes: "PreTrainedConfig") -> None:
        from .self_check import unreachable

        if reason := unreachable(sizes):
            name = sizes.model_type
            raise DataError(f"{self.subject}: mmgen cannot use the encoder '{name}': {reason}; choose another encoder")


@mmgen.hookimpl
def register_backbones():
    return [Bert, Roberta, AnyEncoder]
