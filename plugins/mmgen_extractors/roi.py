"""Features of a timm network's map, pooled over boxes or over the cells of a grid (He et al., 2017, RoIAlign)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from mmgen_vision.cnn import CnnExtractor, Network, extract_records, weights_name
from mmgen_vision.cnn_config import CnnConfig
from PIL import Image
from torch import Tensor
from torchvision.ops import roi_align

from mmgen.parts import FailedImage, Picture, Record

from . import Roi, TimmGrid

DETECTOR = "detector"  # in a saved extractor's folder: the folder of its detector


class RoiFeatures(CnnExtractor):
    """Extracts features (R, C x pool x pool) for a picture's R boxes."""

    def __init__(self, config: CnnConfig, folder: Path | None = None) -> None:
        level, pool, size = config.feature_settings()
        self.network = Network(config.model, config.weights, config.seed, level, size, folder=folder)
        self.batch_size = config.batch_size
        self.detector = None
        boxes: dict[str, Any]
        if isinstance(config, TimmGrid):
            self.pooling = RoiPooling(pool, parts_of_picture(config.grid), own_boxes=False)
            boxes = {"grid": config.grid}
        else:
            assert isinstance(config, Roi)
            spread = [box for parts in range(1, config.spread + 1) for box in parts_of_picture(parts)]
            self.pooling, boxes = RoiPooling(pool, spread), {"spread": config.spread}
            if config.detector:
                self.detector = config.detector.load(folder / DETECTOR) if folder else config.detector.build()
                self.thread_safe, boxes = self.detector.thread_safe, {"detector": dict(self.detector.fingerprint)}
        settings = {"model": config.model, "weights": weights_name(config.weights), "seed": config.seed, "level": level}
        self.fingerprint = {
            "extractor": config.type,
            "model": config.model,
            "digest": self.network.digest,
            "settings": {**settings, "pool": pool, "image_size": size, **boxes},
        }

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        return extract_records(self.fingerprint["extractor"], source, skip, self.batch_size, self._pool_boxes)

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
    """Pools a map over boxes (RoIAlign), in size x size parts: a picture's own, or `boxes` if it has none. A grid has
    the same boxes for all pictures (`own_boxes` is false)."""

    size: int
    boxes: Sequence[tuple[float, float, float, float]]
    own_boxes: bool = True

    def regions(self, picture: Picture) -> Record:
        has_boxes = picture.boxes is not None and self.own_boxes
        chosen = picture.boxes if picture.boxes is not None and self.own_boxes else self.boxes
        boxes = torch.tensor([list(box) for box in chosen], dtype=torch.float32).reshape(-1, 4)
        class_names = tuple(picture.region_names) if has_boxes and picture.region_names is not None else None
        classes = picture.classes if has_boxes else None
        return Record(picture.key, boxes[:, :0].numpy(), boxes.clamp(0, 1).numpy(), class_names, classes=classes)

    def pool(self, maps: Tensor, extents: Tensor, boxes: Sequence[Tensor]) -> Tensor:
        scale = torch.tensor([maps.shape[3], maps.shape[2]], device=maps.device)
        scaled = [inner * (extent * scale).repeat(2) for inner, extent in zip(boxes, extents, strict=True)]
        pooled: Tensor = roi_align(maps, scaled, self.size, sampling_ratio=-1, aligned=True)
        return pooled.flatten(1)


def parts_of_picture(side: int) -> list[tuple[float, float, float, float]]:
    """The boxes of a picture's side x side parts, row by row."""
    return [
        (column / side, row / side, (column + 1) / side, (row + 1) / side)
        for row in range(side)
        for column in range(side)
    ]
