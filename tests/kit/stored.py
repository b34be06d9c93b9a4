"""A feature store of twelve images, and W over its features."""

import numpy as np
import torch
from mmgen_inputs import Regions
from torch import nn

from kit import stores
from kit.stores import FINGERPRINT
from mmgen.examples import Example
from mmgen.parts import Record

E, D = 32, 6


class Words:
    """The parts of a backbone that W needs: width and scale of the word embeddings, and token types."""

    input_size, mask_id, types = E, 0, 2

    def __init__(self):
        self.table = nn.Embedding(50, E)
        nn.init.normal_(self.table.weight, std=0.05)

    def parameters(self):
        return self.table.parameters()

    def encode_text(self, text):
        return list(range(40))

    def embed(self, ids):
        return self.table(ids)


def features(regions, seed=0, width=D):
    """Features far from 0 and of very different scales, like those of a ReLU network."""
    rng = np.random.default_rng(seed)
    return (3 + rng.standard_normal((regions, width)) * np.linspace(0.1, 2, width)).astype(np.float32)


def record(key, regions, seed=0, **changes):
    boxes = np.tile(np.array([[0.1, 0.2, 0.6, 0.9]], np.float32), (regions, 1))
    return Record(key, **{"features": features(regions, seed), "boxes": boxes, **changes})


def fill(path, fingerprint=FINGERPRINT, records=None, dtype="float32"):
    records = records or [record(str(number), number, seed=number) for number in range(12)]
    return stores.fill(path, records, dtype, fingerprint).path


def embedder(**settings):
    torch.manual_seed(0)
    return Regions(fields=("image",), **settings).build(Words())


def example(value):
    return Example("e", {"image": value})


def states(model, *values):
    return model(**model.reader.collate([model.reader.read(example(value)) for value in values]))
