"""What all systems learn from and write for: made-up images, captions and questions, and the models' front.

Words are made up too, as many as the vocabulary wants, each one a token, so that every row has its stated length.
"""

from __future__ import annotations

import itertools
import random
import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from mmgen_encoders.encoder import EncoderBackbone
from transformers import PreTrainedModel

from mmgen.configs import BackboneConfig, EmbedderConfig, GeneratorConfig, PartConfig
from mmgen.data.collate import Collator
from mmgen.features.writer import StoreWriter
from mmgen.model import Model, compose
from mmgen.parts import Record
from mmgen.recipe.load import part_from
from mmgen.registry import installed
from mmgen.tensors import Batch, Example

from .flops import Shape

Kind = TypeVar("Kind", bound=PartConfig)

NEVER = -1e4  # the end token's bias while decoding: every system writes the same number of tokens


def words(count: int) -> list[str]:
    """Four letters each."""
    letters = itertools.product(string.ascii_lowercase, repeat=4)
    return ["".join(word) for word in itertools.islice(letters, count)]


def build(shape: Shape, images: int, max_tokens: int, folder: Path, dropout: float | None = None) -> Model:
    """Our model with random weights, and a store of `images` images' features in the folder."""
    store = folder / "regions.h5"
    if not store.exists():
        _fill(store, shape, images)
    sizes: dict[str, Any] = {
        "layers": shape.layers,
        "width": shape.width,
        "heads": shape.heads,
        "vocabulary": shape.vocabulary,
    }
    sizes |= {} if dropout is None else {"dropout": dropout}
    backbone = _part(BackboneConfig, "bert", sizes)
    inputs = {
        "image": _part(EmbedderConfig, "regions", {"features": f'"{store}"', "max_regions": shape.regions}),
        "caption": _part(EmbedderConfig, "text", {}),
    }
    generator = _part(GeneratorConfig, "masked", {"max_tokens": max_tokens})
    return compose(backbone, inputs, generator, texts=words(shape.vocabulary))


def encoder_of(model: Model) -> PreTrainedModel:
    """The encoder of transformers inside our model: `bert` is built by `mmgen_encoders`, whose backbones hold one."""
    assert isinstance(model.backbone, EncoderBackbone)
    return model.backbone.model


def _part(of: type[Kind], name: str, settings: dict[str, Any]) -> Kind:
    return part_from(of, name, tuple(f"{key}={value}" for key, value in settings.items()), installed())


def _fill(store: Path, shape: Shape, images: int) -> None:
    draw = np.random.default_rng(0)
    with StoreWriter(store, {"made": "random numbers"}) as writer:
        for image in range(images):
            corners = np.sort(draw.random((shape.regions, 2, 2), np.float32), 1).reshape(-1, 4)
            writer.add(Record(str(image), draw.standard_normal((shape.regions, shape.features), np.float32), corners))
        writer.finish()


def examples(shape: Shape, model: Model, images: int, questions: int, tokens: int) -> list[Example]:
    """`questions` an image, each of `tokens` tokens with its end."""
    draw = random.Random(0)
    vocabulary = model.backbone.tokenizer.get_vocab()
    known = [word for word in words(shape.vocabulary) if word in vocabulary]

    def text(length: int) -> str:
        return " ".join(draw.choices(known, k=length))

    return [
        Example(
            str(i), {"image": str(i), "caption": text(shape.caption)}, tuple(text(tokens - 1) for _ in range(questions))
        )
        for i in range(images)
    ]


def batch_of(model: Model, chosen: Sequence[Example], objectives: Sequence[str] = ("generator",)) -> Batch:
    return Collator(model, model.inputs, objectives)(chosen)


def forbid_end(head: torch.nn.Linear, end_id: int) -> None:
    """From now on the end token is not chosen."""
    with torch.no_grad():
        head.bias[end_id] = NEVER
