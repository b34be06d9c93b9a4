"""The grid extractor: a timm network's feature map, averaged over each cell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from PIL import Image
from torch.nn import functional

from mmgen.errors import DataError
from mmgen.features.cnn import Network, extract_records, weights_name
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import TimmGrid


class GridFeatures(Extractor):
    """Extracts features (grid x grid, C x pool x pool) per picture, row by row."""

    def __init__(self, config: TimmGrid, folder: Path | None = None) -> None:
        level, self.pool, size = config.feature_settings()
        self.network = Network(config.model, config.weights, config.seed, level, size, fit="stretch", folder=folder)
        self.license = self.network.license
        self.batch_size, self.grid = config.batch_size, config.grid
        edges = torch.linspace(0, 1, config.grid + 1)
        rows, columns = torch.meshgrid(torch.arange(config.grid), torch.arange(config.grid), indexing="ij")
        self.boxes = (
            torch.stack([edges[columns], edges[rows], edges[columns + 1], edges[rows + 1]], -1).flatten(0, 1).numpy()
        )
        settings = {"model": config.model, "weights": weights_name(config.weights), "seed": config.seed, "level": level}
        settings |= {"grid": config.grid, "pool": self.pool, "image_size": size}
        self.fingerprint = {
            "extractor": "timm_grid",
            "model": config.model,
            "digest": self.network.digest,
            "settings": settings,
        }

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        if isinstance(source, Path):
            raise DataError(f"{source}: 'timm_grid' extracts features from pictures, not from a file")
        yield from extract_records(source, skip, self.batch_size, self._cells)

    def save(self, folder: Path) -> None:
        self.network.save(folder)

    @torch.inference_mode()
    def _cells(self, batch: Sequence[tuple[Picture, Image.Image]]) -> list[Record]:
        maps, _ = self.network([image for _, image in batch])
        fine = functional.adaptive_avg_pool2d(maps, self.grid * self.pool)  # (B, C, grid x pool, grid x pool)
        parts = fine.unflatten(3, (self.grid, self.pool)).unflatten(
            2, (self.grid, self.pool)
        )  # (B, C, grid, pool, grid, pool)
        cells = parts.permute(0, 2, 4, 1, 3, 5).flatten(3).flatten(1, 2).cpu()  # (B, grid x grid, C x pool x pool)
        return [
            Record(picture.key, features.numpy(), self.boxes)
            for (picture, _), features in zip(batch, cells, strict=True)
        ]
