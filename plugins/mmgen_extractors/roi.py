"""The extractor of RoI features: a timm network's feature map, pooled over each box (He et al., 2017, RoIAlign)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from mmgen_vl.cnn import CnnExtractor, Network, extract_records, weights_name
from PIL import Image
from torch import Tensor
from torchvision.ops import roi_align

from mmgen.parts import FailedImage, Picture, Record

from . import Roi

DETECTOR = "detector"  # in a saved extractor's folder: the folder of its detector


class RoiFeatures(CnnExtractor):
    """Extracts features (R, C x pool x pool) for a picture's R boxes."""

    def __init__(self, config: Roi, folder: Path | None = None) -> None:
        level, pool, size = config.feature_settings()
        self.network = Network(config.model, config.weights, config.seed, level, size, folder=folder)
        self.batch_size = config.batch_size
        self.pooling = RoiPooling(pool, spread(config.spread))
        self.detector = None
        if config.detector:
            self.detector = config.detector.load(folder / DETECTOR) if folder else config.detector.build()
            self.thread_safe = self.detector.thread_safe
        settings = {
            "model": config.model,
            "weights": weights_name(config.weights),
            "seed": config.seed,
            "level": level,
            "pool": pool,
            "image_size": size,
        }
        boxes = {"detector": dict(self.detector.fingerprint)} if self.detector else {"spread": config.spread}
        self.fingerprint = {
            "extractor": "roi",
            "model": config.model,
            "digest": self.network.digest,
            "settings": {**settings, **boxes},
        }

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        return extract_records("roi", source, skip, self.batch_size, self._pool_boxes)

    def save(self, folder: Path) -> None:
        self.network.save(folder)
        if self.detector is not None:
            (folder / DETECTOR).mkdir()
            self.detector.save(folder / DETECTOR)

    @torch.inference_mode()
    def _pool_boxes(self, batch: Sequence[tuple[Picture, Image.Image]]) -> Iterator[Record]:
        regions = [self._boxes_of_picture(picture, image) for picture, image in batch]
        maps, extents = self.network([image for _, image in batch])
        boxes = [torch.as_tensor(region.boxes, device=maps.device) for region in regions]
        pooled = self.pooling.pool(maps, extents, boxes).cpu()  # (sum R, D)
        for region, features in zip(regions, pooled.split([len(inner) for inner in boxes]), strict=True):
            yield replace(region, features=features.numpy())

    def _boxes_of_picture(self, picture: Picture, image: Image.Image) -> Record:
        """A record with boxes, class names, scores and classes of a picture, still without features."""
        if picture.boxes is None and self.detector is not None:
            (record,) = self.detector.records([Picture(picture.key, lambda: image)])
            assert isinstance(record, Record)  # the picture is open already
            return record
        return self.pooling.regions(picture)


@dataclass(frozen=True)
class RoiPooling:
    """Pools a map over boxes (RoIAlign), in size x size parts: those of a picture, or `default_boxes` if it has
    none."""

    size: int
    default_boxes: Sequence[tuple[float, float, float, float]]

    def regions(self, picture: Picture) -> Record:
        has_boxes = picture.boxes is not None
        picture_boxes = self.default_boxes if picture.boxes is None else picture.boxes
        boxes = torch.tensor([list(box) for box in picture_boxes], dtype=torch.float32).reshape(-1, 4)
        class_names = tuple(picture.region_names) if has_boxes and picture.region_names is not None else None
        classes = picture.classes if has_boxes else None
        return Record(picture.key, boxes[:, :0].numpy(), boxes.clamp(0, 1).numpy(), class_names, classes=classes)

    def pool(self, maps: Tensor, extents: Tensor, boxes: Sequence[Tensor]) -> Tensor:
        scale = torch.tensor([maps.shape[3], maps.shape[2]], device=maps.device)
        scaled = [inner * (extent * scale).repeat(2) for inner, extent in zip(boxes, extents, strict=True)]
        pooled: Tensor = roi_align(maps, scaled, self.size, sampling_ratio=-1, aligned=True)
        return pooled.flatten(1)


def spread(most: int) -> list[tuple[float, float, float, float]]:
    """Boxes of the whole picture, its 2 x 2 parts, its 3 x 3 parts, ..."""
    return [
        (column / parts, row / parts, (column + 1) / parts, (row + 1) / parts)
        for parts in range(1, most + 1)
        for row in range(parts)
        for column in range(parts)
    ]
