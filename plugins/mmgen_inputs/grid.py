"""The input embedder of grids: W x (features, box) for every cell."""

from __future__ import annotations

from mmgen.features.embedder import StoredEmbedder


class GridEmbedder(StoredEmbedder):
    """features (B, N, D), boxes (B, N, 4) -> states (B, N, E), N cells row by row."""

    def slot_names(self, count: int) -> list[str]:
        side = round(count**0.5)
        if side * side != count:
            return super().slot_names(count)
        return [f"row {index // side + 1}, column {index % side + 1}" for index in range(count)]
