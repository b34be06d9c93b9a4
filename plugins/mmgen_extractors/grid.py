"""The grid extractor: a timm network's feature map, averaged over each cell of a picture."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from mmgen_vl.cnn import CnnExtractor, Network, extract_records, weights_name
from PIL import Image
from torch import Tensor
from torch.nn import functional

from mmgen.parts import FailedImage, Picture, Record

from . import TimmGrid


class GridFeatures(CnnExtractor):
    """Extracts features (grid x grid, C x pool x pool) per picture, row by row."""

    pooling: CellPooling

    def __init__(self, config: TimmGrid, folder: Path | None = None) -> None:
        level, pool, size = config.feature_settings()
        self.network = Network(config.model, config.weights, config.seed, level, size, fit="stretch", folder=folder)
        self.batch_size = config.batch_size
        with torch.device("cpu"):  # an export is first built on the meta device
            edges, cells = torch.linspace(0, 1, config.grid + 1), torch.arange(config.grid)
        rows, columns = torch.meshgrid(cells, cells, indexing="ij")
        corners = [edges[columns], edges[rows], edges[columns + 1], edges[rows + 1]]
        boxes = torch.stack(corners, -1).flatten(0, 1).numpy()
        self.pooling = CellPooling(config.grid, pool, boxes)
        settings = {"model": config.model, "weights": weights_name(config.weights), "seed": config.seed, "level": level}
        settings |= {"grid": config.grid, "pool": pool, "image_size": size}
        self.fingerprint = {
            "extractor": "timm_grid",
            "model": config.model,
            "digest": self.network.digest,
            "settings": settings,
        }

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        return extract_records("timm_grid", source, skip, self.batch_size, self._cells)

    def save(self, folder: Path) -> None:
        self.network.save(folder)

    @torch.inference_mode()
    def _cells(self, batch: Sequence[tuple[Picture, Image.Image]]) -> list[Record]:
        maps, extents = self.network([image for _, image in batch])
        cells = (
            self.pooling.pool(maps, extents).cpu().unflatten(0, (len(batch), -1))
        )  # (B, grid x grid, C x pool x pool)
        return [
            Record(picture.key, features.numpy(), self.pooling.boxes)
            for (picture, _), features in zip(batch, cells, strict=True)
        ]


@dataclass(frozen=True)
class CellPooling:
    """Averages a map over each cell, in pool x pool parts."""

    grid: int
    parts: int
    boxes: np.ndarray  # (grid x grid, 4) float32, of every picture

    def regions(self, picture: Picture) -> Record:
        return Record(picture.key, self.boxes[:, :0], self.boxes)

    def pool(self, maps: Tensor, extents: Tensor, boxes: Sequence[Tensor] = ()) -> Tensor:
        fine = functional.adaptive_avg_pool2d(maps, self.grid * self.parts)  # (B, C, grid x pool, grid x pool)
        cells = fine.unflatten(3, (self.grid, self.parts)).unflatten(
            2, (self.grid, self.parts)
        )  # (B, C, grid, pool, grid, pool)
        return cells.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(0, 2)  # (B x grid x grid, C x pool x pool)
