"""The table [training]: how a step trains. A key that contradicts another one is reported under its name."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from ..configs import Config

NO_RESULT = ("num_workers", "checkpoint_every")  # keys that change no result
Share = Annotated[float, Field(ge=0, lt=1)]
Positive = Annotated[float, Field(gt=0)]


class Training(Config):
    """How a step trains. A step may override any key in its `training` table."""

    batch_size: int = Field(128, ge=1, description="pairs (one input, one target) per optimiser update")
    micro_batch_size: int | None = Field(
        None, ge=1, description="pairs per forward pass; gradients are accumulated over a batch. By default batch_size"
    )
    length_bucket: int = Field(
        16,
        ge=1,
        description="updates whose examples are sorted by length among them, for less padding; 1: no sorting",
    )
    updates: int | None = Field(
        None,
        ge=0,
        le=1_000_000_000,
        description="how many optimiser updates a step makes, whatever `epochs` says; 0: whole epochs",
    )
    epochs: int = Field(5, ge=1, le=1_000_000, description="passes over the training data")
    learning_rate: float = Field(2e-5, gt=0, description="highest learning rate of the backbone")
    input_learning_rate: float | None = Field(
        None, gt=0, description="highest learning rate of the inputs' embedders; by default learning_rate"
    )
    learning_rates: dict[str, Positive] = Field(
        {},
        description='highest learning rates of single parameters: pattern of names -> rate, such as "*.image.cnn.*" = '
        "1e-5; the longest pattern that matches a name counts",
    )
    warmup_updates: int | None = Field(
        None,
        ge=0,
        description="updates of warm-up, over which the rate rises, whatever `warmup_ratio` says; 0: that share",
    )
    warmup_ratio: float = Field(
        0.1,
        ge=0,
        le=1,
        description="share of all updates that are warm-up, over which the rate rises linearly",
    )
    lr_scheduler: Literal["linear", "steps", "none"] = Field(
        "linear",
        description="after the warm-up the rate falls linearly to 0 at the last update, falls in steps, or stays",
    )
    lr_milestones: tuple[Positive, ...] = Field(
        (), description='epochs after which the rate falls, in order; for lr_scheduler = "steps"'
    )
    lr_gamma: float = Field(
        0.1, gt=0, lt=1, description='factor of the rate at each milestone; for lr_scheduler = "steps"'
    )
    optimizer: Literal["adamw", "sgd"] = Field("adamw", description="AdamW, or stochastic gradient descent")
    momentum: Share = Field(0.0, description="SGD's momentum")
    betas: tuple[Share, Share] = Field(
        (0.9, 0.999), description="AdamW's decay of the means of gradients and of squared gradients"
    )
    eps: float = Field(
        1e-8, gt=0, description="AdamW's, added to the root of the mean square; BERT was trained with 1e-6"
    )
    bias_correction: bool = Field(
        True, description="AdamW's: correct the means for starting at 0; the training of BERT and VisualBERT did not"
    )
    weight_decay: float = Field(
        0.01, ge=0, description="weight decay of all parameters but biases and norms: AdamW's, or L2 with SGD"
    )
    max_grad_norm: float | None = Field(
        1.0, gt=0, description="gradients with a larger norm are scaled down to this norm"
    )
    clip: Literal["whole", "each"] = Field(
        "whole", description="max_grad_norm applies to all gradients together, or to the gradient of each parameter"
    )
    freeze: tuple[str, ...] = Field(
        (),
        description='patterns of parameters to freeze in the parts that train, such as "*.pooler.*"; names are those '
        "in weights.safetensors",
    )
    precision: Literal["auto", "fp32", "bf16"] = Field("auto", description="auto: bf16 on a GPU that has it, else fp32")
    gradient_checkpointing: bool = Field(
        False,
        description="recompute the encoder's activations in the backward pass: less memory, about a third more time",
    )
    keep: Literal["last", "best"] = Field(
        "last",
        description="keep the weights of the last epoch, or of the one with the lowest validation loss",
    )
    early_stopping_patience: int | None = Field(
        None,
        ge=1,
        description="stop after this many epochs in a row without a lower validation loss",
    )
    checkpoint_every: int = Field(
        200, ge=1, description="updates between checkpoints; there is also one after every epoch"
    )
    num_workers: int | None = Field(
        None,
        ge=0,
        le=256,
        description="processes that prepare batches; the number does not change the result. By default 0 on a CPU, and "
        "up to 4 on a GPU",
    )

    def model_post_init(self, context: Any) -> None:
        if self.lr_scheduler == "steps" and not self.lr_milestones:
            raise ValueError("lr_scheduler: steps need lr_milestones, epochs after which the rate falls: [14, 18]")
        if self.momentum and self.optimizer != "sgd":
            raise ValueError(f'momentum: needs optimizer = "sgd", not "{self.optimizer}"')
