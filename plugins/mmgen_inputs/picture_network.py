"""The embedder of pictures: a network whose maps are pooled to features, and which may train; the layer after it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from mmgen_vision.cnn import CnnExtractor
from torch import Tensor, nn

from mmgen.errors import DataError
from mmgen.examples import ResolvedExample
from mmgen.features.embedder import StoredEmbedder
from mmgen.features.statistics import sample, statistics, word_scale
from mmgen.features.uninitialised import is_loading
from mmgen.parts import Backbone, Embedder, Picture
from mmgen.tensors import Segment, Slots

from . import Pictures
from .picture_reader import PictureReader, stacked

PIXELS = ("pixels", "sizes", "rois", "source")  # of `PictureReader.collate`
AT_ONCE = 16  # pictures from which statistics are measured


class PictureEmbedder(Embedder):
    """pixels (Q, 3, S, S) -> features (Q, R, D) -> the states (B, N, E) that an input of features makes of them.

    network  the network; always in eval mode, so that the statistics of batch norms stay, and a row depends on no
             other row. Its normalisation layers are frozen
    inner    the input of features
    """

    reader: PictureReader

    def __init__(self, config: Pictures, backbone: Backbone) -> None:
        super().__init__()
        settings, fresh = config.network(), config.width is None
        if fresh and is_loading():  # of an export, which must not choose what is fetched
            raise DataError("width is missing in the settings of the trained model; copy the complete folder again")
        extractor = settings.build()
        assert isinstance(extractor, CnnExtractor)  # of a CnnConfig
        self.network, self.pooling = extractor.network, extractor.pooling
        if fresh:
            self.network.cpu()
        for module in self.network.modules():
            for parameter in module.parameters(recurse=False):
                parameter.requires_grad_("Norm" not in type(module).__name__)
        if config.gradient_checkpointing:
            recompute(self.network.module, settings.model)
        self.width = config.width or self.network.width * self.pooling.size**2
        inner = config.inner(self.width).build(backbone)
        if not isinstance(inner, StoredEmbedder):
            raise DataError(f"embedder: '{config.embedder.type}' does not use mmgen's StoredEmbedder; use another")
        self.inner = inner
        self.reader = PictureReader(config, inner.reader, self.pooling, settings.feature_settings().image_size)
        self.scale = word_scale(backbone) if fresh else None  # until the statistics are measured
        self._seen: tuple[Tensor, Tensor] | None = None  # pixels, and the features that `forward` made of them

    def train(self, mode: bool = True) -> PictureEmbedder:
        super().train(mode)
        self.network.eval()
        return self

    def prepare(self, pictures: Mapping[str, Picture]) -> None:
        """A new model measures the features of the pictures, as `StoredEmbedder` measures those of a store."""
        self.reader.pictures = pictures
        if self.scale is None:
            return
        keys = sample(list(pictures))
        self.reader.inner.classes = next(filter(None, map(self._class_names, keys)), None)
        self.to("cuda" if torch.cuda.is_available() else "cpu")
        mean, deviation = statistics(self._measure_features(keys), self.width, self.reader.field)
        self.to("cpu")
        self.inner.projection.reset_parameters()  # draws as in building, so W starts as that of stored features
        self.inner.init_from_statistics(mean, deviation, self.scale)
        self.scale = None

    def _class_names(self, key: str) -> tuple[str, ...] | None:
        """The class names of a picture's regions, if they are known."""
        with contextlib.suppress(DataError):
            if (classes := self.reader.regions_of(key).classes) is not None:
                return classes.names
        return None

    @torch.no_grad()
    def _measure_features(self, keys: Sequence[str]) -> Iterator[np.ndarray]:
        """Features (R, D) of pictures. A picture that cannot be read is left out here, and reported when it is read."""
        device = self.network.mean.device
        for first in range(0, len(keys), AT_ONCE):
            seen = []
            for key in keys[first : first + AT_ONCE]:
                with contextlib.suppress(DataError):
                    seen.append(self.reader.see(key, key))
            if seen:
                features = self.pooled(*(tensor.to(device) for tensor in stacked(seen, self.reader.size))).cpu()
                yield from (row[: len(picture.boxes)].numpy() for row, picture in zip(features, seen, strict=True))

    def forward(self, **collated: Any) -> Segment:
        inner = self._with_features(collated)
        self._seen = collated["pixels"], inner["features"]  # for the terms that the input adds to other slots
        return self.inner(**inner)

    def _features(self, collated: Mapping[str, Tensor]) -> Tensor:
        """The features (B, N, D) of slots; `features` (B, N, W) are the weights of W regions for each, see `reader`."""
        rois, source, weights = collated["rois"], collated["source"], collated["features"]
        regions = self.pooled(collated["pixels"], collated["sizes"], rois).to(weights.dtype)  # (Q, R, D)
        shown = regions[source].flatten(1, 2)  # (B, P x R, D)
        weights = weights[..., : rois.shape[1]]  # (B, N, R)
        if source.shape[1] > 1:
            places = torch.arange(source.shape[1], device=weights.device)
            of_picture = collated["picture"].unsqueeze(-1) == places  # (B, N, P)
            weights = (of_picture.unsqueeze(-1) * weights.unsqueeze(-2)).flatten(-2)  # (B, N, P x R)
        return weights @ shown

    def pooled(self, pixels: Tensor, sizes: Tensor, rois: Tensor) -> Tensor:
        """Features (Q, R, D) of the regions (Q, R, 4) of pictures. See `PictureReader.collate`."""
        maps, extents = self.network(pixels, sizes)
        return self.pooling.pool(maps, extents, list(rois.float())).unflatten(0, (len(rois), -1))

    def add(self, slots: Slots, collated: Mapping[str, Tensor] | None, name: str) -> Tensor | None:
        return self.inner.add(slots, collated and self._with_features(collated), name)

    def tail_term(self, slots: Slots, collated: Mapping[str, Tensor] | None) -> Tensor | None:
        term = self.inner.tail_term(slots, collated and self._with_features(collated))
        self._seen = None  # this method is called last
        return term

    def _with_features(self, collated: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """The collated input as the input of features gets it."""
        seen = self._seen  # read once: another thread may replace it
        features = seen[1] if seen and seen[0] is collated["pixels"] else self._features(collated)
        return {key: tensor for key, tensor in collated.items() if key not in PIXELS} | {"features": features}

    def inferred_settings(self) -> dict[str, Any]:
        classes = {"classes": list(self.reader.inner.classes)} if self.reader.inner.classes else {}
        return {"width": self.width, **classes}

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        return self.inner.vocabularies()

    def describe(self, example: ResolvedExample) -> dict[str, Any]:
        return self.inner.describe(self.reader.described(example))

    def published(self, weights: Mapping[str, Tensor]) -> Mapping[str, Tensor]:
        """The published weights of the input of features; the network has its own."""
        return {f"inner.{name}": tensor for name, tensor in self.inner.published(weights).items()}


def recompute(network: nn.Module, name: str) -> None:
    """Let a timm network recompute its activations in the backward pass. Raises DataError if it cannot."""
    modules: Iterator[Any] = network.modules()
    for module in modules:
        if hasattr(module, "inplace"):  # would change the input that is kept to recompute from
            module.inplace = False
    model: Any = getattr(network, "model", network)
    try:
        model.set_grad_checkpointing(True)
    except (AttributeError, AssertionError):
        raise DataError(
            f"gradient_checkpointing: timm's '{name}' cannot recompute its layers; remove the key"
        ) from None
