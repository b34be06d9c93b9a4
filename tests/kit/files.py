"""An input that reads files, as a plugin would have it, and a small model that reads nothing else."""

from collections import Counter
from pathlib import Path
from typing import Literal

import torch
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_scenes import Scenes

import mmgen
from mmgen.inference.predictor import Predictor
from mmgen.model import compose
from mmgen.parts import Embedder, File, Reader
from mmgen.recipe.tables import Recipe, Step
from mmgen.tensors import Segment
from mmgen.testing import TEXTS

READ: list[object] = []  # the values that readers met


class Bytes(mmgen.EmbedderConfig):
    """The numbers of a file's bytes, through one linear layer."""

    takes = "file"

    type: Literal["bytes"] = "bytes"

    def build(self, backbone):
        return BytesEmbedder(self.fields[0], backbone)


class Undeclared(Bytes):
    """As an input of a plugin that does not say what it takes."""

    takes = None
    type: Literal["undeclared"] = "undeclared"


class BytesReader(Reader):
    """In the data, a value is a path."""

    def __init__(self, field):
        self.field = field

    def read(self, example):
        value = example.inputs[self.field]
        READ.append(value)
        with value.open() if isinstance(value, File) else Path(value).open("rb") as file:
            counts = Counter(file.read())
        return torch.tensor([[float(counts[byte]) for byte in range(256)]])

    def collate(self, items):
        return {"counts": torch.stack(items)}


class BytesEmbedder(Embedder):
    def __init__(self, field, backbone):
        super().__init__()
        self.reader, self.dense = BytesReader(field), torch.nn.Linear(256, backbone.input_size)

    def forward(self, counts):
        return Segment(self.dense(counts), torch.ones(counts.shape[:2], dtype=torch.bool))


def predictor(config: type[mmgen.EmbedderConfig] = Bytes) -> Predictor:
    """The predictor of a step that reads a file as 'sound', with random weights."""
    inputs = {"sound": config(fields=("sound",))}
    backbone = Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2)
    steps = {"all": Step(inputs=("sound",), train=("sound",))}
    recipe = Recipe(
        name="files", backbone=backbone, inputs=inputs, generator=Masked(max_tokens=6), steps=steps, data=Scenes()
    )
    torch.manual_seed(0)
    return Predictor(compose(backbone, inputs, recipe.generator, texts=TEXTS), recipe, "all")
