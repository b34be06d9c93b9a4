"""Features of a timm network's map, pooled over boxes or over the cells of a grid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mmgen_vision.boxes import cells
from mmgen_vision.cnn import (
    EMPTY,
    CnnExtractor,
    LoadedPicture,
    Network,
    RoiPooling,
    digest,
    save_network,
)

from mmgen.parts import Picture, Record

from . import Roi, TimmGrid

DETECTOR = "detector"  # in a saved extractor's folder: the folder of its detector


class RoiFeatures(CnnExtractor):
    """Extracts features (R, C x pool x pool) for a picture's R boxes."""

    def __init__(self, config: Roi | TimmGrid, folder: Path | None = None) -> None:
        level, pool, size = config.feature_settings()
        self.network = Network(config.model, config.weights, config.seed, level, size, folder)
        self.batch_size, self.size = config.batch_size, size
        weights_digest = EMPTY
        if config.weights != EMPTY:
            weights_digest = digest(self.network.module.state_dict())
            self.network.to(self.device)
        self.detector = None
        boxes: dict[str, Any]
        if isinstance(config, TimmGrid):
            self.pooling = RoiPooling(pool, cells(config.grid, config.grid), own_boxes=False)
            boxes = {"grid": config.grid}
        else:
            spread = [box for parts in range(1, config.spread + 1) for box in cells(parts, parts)]
            self.pooling, boxes = RoiPooling(pool, spread), {"spread": config.spread}
            if config.detector:
                self.detector = config.detector.load(folder / DETECTOR) if folder else config.detector.build()
                self.thread_safe, boxes = self.detector.thread_safe, {"detector": dict(self.detector.fingerprint)}
        weights = config.weights if config.weights in ("pretrained", "random") else "file"  # the digest identifies it
        settings = {"model": config.model, "weights": weights, "seed": config.seed, "level": level}
        self.fingerprint = {
            "extractor": config.type,
            "model": config.model,
            "digest": weights_digest,
            "settings": {**settings, "pool": pool, "image_size": size, **boxes},
        }

    def save(self, folder: Path) -> None:
        save_network(self.network.module.state_dict(), folder)
        if self.detector is not None:
            (folder / DETECTOR).mkdir()
            self.detector.save(folder / DETECTOR)

    def regions(self, loaded: LoadedPicture) -> Record:
        """A record with boxes, class names, scores and classes of a picture, still without features."""
        picture, image = loaded
        if picture.boxes is None and self.detector is not None:
            (record,) = self.detector.records([Picture(picture.key, lambda: image)])
            assert isinstance(record, Record)  # the picture is open already
            return record
        return super().regions(loaded)
