"""The reader opens files in loader workers; the network is trained with the step, without its stem."""

import numpy as np
import torch
from PIL import Image
from torch import nn

from mmgen.errors import DataError, MissingInput
from mmgen.parts import Embedder, Reader
from mmgen.tensors import Segment


class PixelsReader(Reader):
    def __init__(self, config):
        self.field, self.size = config.fields[0], config.size

    def read(self, example):
        path = example.inputs.get(self.field)
        if path is None:
            raise MissingInput(f"example '{example.id}' has no {self.field}", self.field)
        try:
            with Image.open(path) as picture:
                return np.asarray(picture.convert("RGB").resize((self.size, self.size)))
        except OSError as error:
            raise DataError(f"example '{example.id}': {path} cannot be read: {error}") from None

    def collate(self, items):
        return {"pixels": torch.from_numpy(np.stack(items)).permute(0, 3, 1, 2)}  # (B, 3, size, size) uint8

    def slots(self, example):
        return (self.size // 8) ** 2


class PixelsEmbedder(Embedder):
    def __init__(self, config, backbone):
        super().__init__()
        self.reader = PixelsReader(config)
        self.stem = nn.Conv2d(3, 16, 4, stride=4).requires_grad_(not config.freeze_stem)
        self.grid = nn.Conv2d(16, backbone.input_size, 2, stride=2)

    def forward(self, pixels):
        states = self.grid(self.stem(pixels.float() / 255).relu()).flatten(2).transpose(1, 2)  # (B, N, E)
        return Segment(states, torch.ones_like(states[..., 0], dtype=torch.bool))
