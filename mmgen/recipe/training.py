"""The table [training]: how a step learns. Keys that contradict each other are refused, each under its own name."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Annotated, Any, Literal, Self

from pydantic import Field, ValidationInfo, field_validator, model_validator

from ..configs import Config

INSTEAD_OF = {
    "warmup_ratio": "warmup_updates",
    "warmup_updates": "warmup_ratio",
}  # a layer with the one takes the lower one's other
NO_RESULT = ("num_workers", "checkpoint_every", "shard")  # keys that change no result
Share = Annotated[float, Field(ge=0, lt=1)]
Epochs = Annotated[float, Field(gt=0)]


def laid_over(below: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """A step's own keys over those of the recipe."""
    replaced = {INSTEAD_OF[name] for name in own if name in INSTEAD_OF}
    return {**{name: value for name, value in below.items() if name not in replaced}, **own}


class Training(Config):
    """How a step learns. A step may override any of it in its own `training` table."""

    batch_size: int = Field(128, ge=1, description="pairs (one input, one target) an optimiser update")
    micro_batch_size: int | None = Field(
        None, ge=1, description="pairs at a time; several make an update. By default the whole batch"
    )
    length_bucket: int = Field(
        16,
        ge=1,
        description="updates that share their examples out by length, for less padding; 1: each has whatever comes",
    )
    epochs: int = Field(5, ge=1, description="visits of every example")
    learning_rate: float = Field(2e-5, gt=0, description="highest learning rate of the backbone")
    input_learning_rate: float | None = Field(
        None, gt=0, description="highest learning rate of embedders; by default learning_rate"
    )
    warmup_updates: int | None = Field(
        None, ge=1, description="updates over which the rate rises linearly, in place of the share warmup_ratio"
    )
    warmup_ratio: float = Field(
        0.1,
        ge=0,
        le=1,
        description="share of the updates over which the rate rises linearly; it begins to fall after them",
    )
    lr_scheduler: Literal["linear", "steps", "none"] = Field(
        "linear",
        description="after the warm-up the rate falls linearly to 0 until the last update, or falls in steps, or stays",
    )
    lr_milestones: tuple[Epochs, ...] = Field(
        (), validate_default=True, description="epochs after which the rate falls, in order; for steps"
    )
    lr_gamma: float = Field(0.1, gt=0, lt=1, description="what the rate is multiplied with at each; for steps")
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="AdamW, or stochastic gradient descent")
    momentum: Share = Field(0.0, description="SGD's momentum")
    betas: tuple[Share, Share] = Field(
        (0.9, 0.999), description="AdamW's: how slowly the means of gradients and of their squares change"
    )
    eps: float = Field(
        1e-8, gt=0, description="AdamW's: added to the root of the mean square; BERT was learnt with 1e-6"
    )
    bias_correction: bool = Field(
        True, description="AdamW's: its means are corrected for having begun at 0; BERT's and VisualBERT's own are not"
    )
    weight_decay: float = Field(
        0.01, ge=0, description="but for biases and norms: AdamW's, or with SGD added to the gradient (L2)"
    )
    max_grad_norm: float | None = Field(1.0, gt=0, description="gradients are scaled down to this norm")
    clip: Literal["whole", "each"] = Field(
        "whole", description="whose norm max_grad_norm is: of all gradients together, or of each parameter's by itself"
    )
    freeze: tuple[str, ...] = Field(
        (),
        description='patterns of parameters that stay as they are though their part learns, such as "*.pooler.*"; '
        "names are those in weights.safetensors",
    )
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 on a GPU that has it, else fp32")
    keep: Literal["last", "best"] = Field(
        "last", description="weights of the last epoch, or of the lowest validation loss"
    )
    checkpoint_every: int = Field(
        200, ge=1, description="updates between checkpoints; one is written after every epoch too"
    )
    num_workers: int = Field(
        0, ge=0, le=256, description="processes that prepare batches; no number changes the result"
    )
    shard: bool = Field(
        False,
        description="of several processes, each keeps a slice of the weights, gradients and optimiser (FSDP), for "
        "encoders too large for one",
    )

    @field_validator("warmup_ratio")
    @classmethod
    def _one_warmup(cls, value: float, others: ValidationInfo) -> float:
        if value and others.data.get("warmup_updates"):
            raise ValueError(f"warmup_updates is set as well ({others.data['warmup_updates']}); write one of them")
        return value

    @model_validator(mode="after")
    def _no_share(self) -> Self:
        """A number of updates stands in place of the usual share; a kept recipe says so."""
        if self.warmup_updates is not None:
            self.__dict__["warmup_ratio"] = 0.0
        return self

    @field_validator("lr_milestones")
    @classmethod
    def _for_steps(cls, value: tuple[float, ...], others: ValidationInfo) -> tuple[float, ...]:
        scheduler = others.data.get("lr_scheduler")
        if scheduler == "steps" and not value:
            raise ValueError('lr_scheduler = "steps" needs epochs after which the rate falls, such as [14, 18]')
        if value and scheduler not in ("steps", None):
            raise ValueError(f'it only counts with lr_scheduler = "steps", and lr_scheduler is "{scheduler}"')
        if any(later <= earlier for earlier, later in pairwise(value)):
            raise ValueError("the epochs must rise")
        return value

    @field_validator("lr_gamma")
    @classmethod
    def _of_steps(cls, value: float, others: ValidationInfo) -> float:
        return cls._only(value, "lr_gamma", "lr_scheduler", "steps", others)

    @field_validator("momentum")
    @classmethod
    def _of_sgd(cls, value: float, others: ValidationInfo) -> float:
        return cls._only(value, "momentum", "optimizer", "sgd", others)

    @field_validator("betas", "eps", "bias_correction")
    @classmethod
    def _of_adamw(cls, value: Any, others: ValidationInfo) -> Any:
        return cls._only(value, others.field_name or "", "optimizer", "adamw", others)

    @classmethod
    def _only(cls, value: Any, name: str, key: str, wanted: str, others: ValidationInfo) -> Any:
        """Raises ValueError for another value than the default where the key is not as wanted. The default is let
        through: a kept recipe has every key."""
        chosen = others.data.get(key, wanted)
        if chosen != wanted and value != cls.model_fields[name].default:
            raise ValueError(f'it only counts with {key} = "{wanted}", and {key} is "{chosen}"')
        return value
