"""The input embedder of regions: W x (features, box), bertgen section 3."""

from __future__ import annotations

from mmgen.features.embedder import StoredEmbedder, StoreReader
from mmgen.parts import Backbone

from . import Regions


class RegionReader(StoreReader):
    """Reads regions; hides a region by setting its features to 0."""

    hides = "regions"


class RegionEmbedder(StoredEmbedder):
    """features (B, N, D), boxes (B, N, 4) -> states (B, N, E), N at most `max_regions`."""

    def __init__(self, config: Regions, backbone: Backbone) -> None:
        super().__init__(config, backbone, RegionReader(config, config.max_regions))
