"""Configs of Visual Genome's Faster R-CNN (Anderson et al.), an extractor and a command: 36 regions, 1,600 classes."""

from pathlib import Path
from typing import ClassVar, Literal

from pydantic import Field

import mmgen


class VisualGenome(mmgen.ExtractorConfig):
    """Regions of the Faster R-CNN that LXMERT, VisualBERT and VL-BERT used, as published for PyTorch
    (unc-nlp/frcnn-vg-finetuned). `mmgen frcnn FOLDER FILE` converts its files once."""

    type: Literal["visual_genome"] = "visual_genome"
    weights: Path = Field(description="the file that `mmgen frcnn` wrote")
    max_regions: int = Field(36, ge=1, le=300, description="most regions per image, by decreasing confidence")

    def build(self):
        from .extractor import VisualGenomeRegions

        return VisualGenomeRegions(self, self.weights)

    def load(self, folder: Path):
        from .extractor import FILE, VisualGenomeRegions

        return VisualGenomeRegions(self, folder / FILE)


class Frcnn(mmgen.CommandConfig):
    """Convert the published Faster R-CNN of Visual Genome."""

    type: Literal["frcnn"] = "frcnn"
    group: ClassVar[str] = "Your data"

    def build(self):
        from .command import frcnn

        return frcnn


@mmgen.hookimpl
def register_extractors():
    return [VisualGenome]


@mmgen.hookimpl
def register_commands():
    return [Frcnn]
