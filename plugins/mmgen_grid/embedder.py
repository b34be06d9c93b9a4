"""A grid as an input: W x (features, place) for every cell."""

from __future__ import annotations

from mmgen.features.embedder import StoredEmbedder


class GridEmbedder(StoredEmbedder):
    """features (B, N, D), boxes (B, N, 4) -> states (B, N, E), N cells row by row."""

    def names(self, count: int) -> list[str]:
        side = round(count**0.5)
        if side * side != count:
            return super().names(count)
        return [f"row {place // side + 1}, column {place % side + 1}" for place in range(count)]
