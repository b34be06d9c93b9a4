"""Config of the extractor of Visual Genome's Faster R-CNN (Anderson et al.): 36 regions, 1,600 classes."""

from pathlib import Path
from typing import Literal

from pydantic import Field

import mmgen

PUBLISHED, PUBLISHED_AT = "pytorch_model.bin", "unc-nlp/frcnn-vg-finetuned"


class VisualGenome(mmgen.ExtractorConfig):
    """Regions of the Faster R-CNN that LXMERT, VisualBERT and VL-BERT used, as published for PyTorch
    (unc-nlp/frcnn-vg-finetuned)."""

    type: Literal["visual_genome"] = "visual_genome"
    weights: Path = Field(
        description="the folder of the published pytorch_model.bin; with objects_vocab.txt and attributes_vocab.txt of "
        "bottom-up-attention beside the weights, regions have names"
    )
    max_regions: int = Field(36, ge=1, le=300, description="most regions per image, by decreasing confidence")

    def base_model(self):
        return PUBLISHED_AT

    def missing_here(self):
        if (self.weights / PUBLISHED).is_file():
            return {}
        path, address = self.weights / PUBLISHED, f"https://huggingface.co/{PUBLISHED_AT}"
        return {"weights": f"{path}: no such file; it is at {address} (262 MB)"}

    def build(self):
        from .extractor import VisualGenomeRegions

        return VisualGenomeRegions(self, self.weights / PUBLISHED)

    def load(self, folder: Path):
        from .extractor import NETWORK, VisualGenomeRegions

        return VisualGenomeRegions(self, folder / NETWORK)


@mmgen.hookimpl
def register_extractors():
    return [VisualGenome]
