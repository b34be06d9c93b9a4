"""The workload of all systems: our model, and made-up images, captions and questions, as examples and as a batch.

Words are synthetic too: as many as the vocabulary has, each of them one token, so that every row has the stated length.
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

NEVER = -1e4  # the end token's bias while decoding, so that every system generates the same number of tokens


def make_words(count: int) -> list[str]:
    """`count` different words of four letters."""
    letters = itertools.product(string.ascii_lowercase, repeat=4)
    return ["".join(word) for word in itertools.islice(letters, count)]


def build(shape: Shape, images: int, max_tokens: int, folder: Path, dropout: float | None = None) -> Model:
    """Our model with random weights; writes a feature store of `images` images to the folder."""
    store = folder / "regions.h5"
    if not store.exists():
        _write_store(store, shape, images)
    sizes: dict[str, Any] = {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.width,
        "num_attention_heads": shape.heads,
        "vocab_size": shape.vocabulary,
    }
    sizes |= {} if dropout is None else {"dropout": dropout}
    backbone = _build_part(BackboneConfig, "bert", sizes)
    inputs = {
        "image": _build_part(EmbedderConfig, "regions", {"features": f'"{store}"', "max_regions": shape.regions}),
        "caption": _build_part(EmbedderConfig, "text", {}),
    }
    generator = _build_part(GeneratorConfig, "masked", {"max_tokens": max_tokens})
    return compose(backbone, inputs, generator, texts=make_words(shape.vocabulary))


def encoder_of(model: Model) -> PreTrainedModel:
    """The transformers encoder inside our model (`mmgen_encoders` builds `bert`, and its backbones hold one)."""
    assert isinstance(model.backbone, EncoderBackbone)
    return model.backbone.model


def _build_part(base: type[Kind], name: str, settings: dict[str, Any]) -> Kind:
    return part_from(base, name, tuple(f"{key}={value}" for key, value in settings.items()), installed())


def _write_store(store: Path, shape: Shape, images: int) -> None:
    draw = np.random.default_rng(0)
    with StoreWriter(store, {"made": "random numbers"}) as writer:
        for image in range(images):
            corners = np.sort(draw.random((shape.regions, 2, 2), np.float32), 1).reshape(-1, 4)
            writer.add(Record(str(image), draw.standard_normal((shape.regions, shape.features), np.float32), corners))
        writer.finish()


def draw_examples(shape: Shape, model: Model, images: int, questions: int, tokens: int) -> list[Example]:
    """`images` examples with `questions` questions each, of `tokens` tokens including the end token."""
    draw = random.Random(0)
    vocabulary = model.backbone.tokenizer.get_vocab()
    known_words = [word for word in make_words(shape.vocabulary) if word in vocabulary]

    def text(length: int) -> str:
        return " ".join(draw.choices(known_words, k=length))

    return [
        Example(
            str(i), {"image": str(i), "caption": text(shape.caption)}, tuple(text(tokens - 1) for _ in range(questions))
        )
        for i in range(images)
    ]


def batch_of(model: Model, examples: Sequence[Example], objectives: Sequence[str] = ("generator",)) -> Batch:
    """The made-up examples as a batch of a model."""
    return Collator(model, model.inputs, objectives)(examples)


def forbid_end(head: torch.nn.Linear, end_id: int) -> None:
    """Prevent the head from choosing the end token."""
    with torch.no_grad():
        head.bias[end_id] = NEVER
