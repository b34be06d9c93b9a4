"""Configs of extractors: networks of timm over regions or cells, detectors, and readers of published feature files."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from mmgen_vision.cnn_config import CnnConfig
from pydantic import Field, SerializeAsAny

import mmgen
from mmgen.configs import PathOrName
from mmgen.files import not_downloaded

PUBLISHED = "pytorch_model.bin"


class Pooled(CnnConfig):
    """Base of features of a timm network over boxes or cells."""

    def build(self, folder: Path | None = None):
        from .roi import RoiFeatures

        return RoiFeatures(self, folder)  # type: ignore[arg-type]  # of one of the two classes below

    def load(self, folder: Path):
        return self.build(folder)


class Roi(Pooled):
    """Features of a timm network, pooled over boxes: those of the picture, of a detector, or of a grid.

    The defaults depend on the weights. Pretrained weights: the coarsest level, averaged over a box. Random weights: the
    finest level in 3 x 3 parts of a box, because later random layers lose information of the first layer.
    """

    type: Literal["roi"] = "roi"
    detector: SerializeAsAny[mmgen.ExtractorConfig] | None = Field(
        None, description="detector of boxes for pictures without boxes"
    )
    spread: int = Field(
        4,
        ge=1,
        le=10,
        description="boxes without a detector: the whole picture, its 2 x 2 parts, and so on up to N x N parts",
    )


class TimmGrid(Pooled):
    """Features of a timm network over a regular grid; a cell's box is its position in the picture.

    The defaults depend on the weights. Pretrained weights: the coarsest level, averaged over a cell. Random weights:
    the finest level in 3 x 3 parts of a cell, because later random layers lose information of the first layer.
    """

    type: Literal["timm_grid"] = "timm_grid"
    grid: int = Field(6, ge=1, le=32, description="cells per side; an image has grid x grid cells")


class Detector(mmgen.ExtractorConfig):
    """Regions of a DETR-like detector of transformers; features are the decoder's states of the selected queries."""

    type: Literal["detector"] = "detector"
    model: Annotated[str, PathOrName()] = Field(
        "facebook/detr-resnet-50", description="hub name or local folder; its weights must be safetensors"
    )
    max_regions: int = Field(36, ge=1, description="most regions per image, by decreasing confidence")
    min_score: float = Field(0.0, ge=0, lt=1, description="regions with a lower confidence are dropped")
    batch_size: int = Field(8, ge=1, description="pictures read at a time; the network gets those of one size together")

    def missing_here(self):
        return {"model": not_downloaded(self.model)}

    def base_model(self):
        return self.model

    def build(self, folder: Path | None = None):
        from .detector import TransformersDetector

        return TransformersDetector(self, folder)

    def load(self, folder: Path):
        return self.build(folder)


class VisualGenome(mmgen.ExtractorConfig):
    """Regions of the Faster R-CNN that LXMERT, VisualBERT and VL-BERT used, as it was published for PyTorch
    (unc-nlp/frcnn-vg-finetuned): `mmgen data get visual_genome_detector FOLDER`."""

    type: Literal["visual_genome"] = "visual_genome"
    sources: ClassVar[Path | None] = Path(__file__).with_name("sources.toml")
    weights: Path = Field(
        description="the folder of the published pytorch_model.bin; with objects_vocab.txt and attributes_vocab.txt of "
        "bottom-up-attention beside the weights, regions have names"
    )
    max_regions: int = Field(36, ge=1, le=300, description="most regions per image, by decreasing confidence")

    def missing_here(self):
        path, command = self.weights / PUBLISHED, f"mmgen data get visual_genome_detector {self.weights}"
        return {"weights": "" if path.is_file() else f"{path}: no such file; `{command}` fetches it (262 MB)"}

    def build(self, folder: Path | None = None):
        from .visual_genome import VisualGenomeRegions

        return VisualGenomeRegions(self, folder)

    def load(self, folder: Path):
        return self.build(folder)


class Published(mmgen.ExtractorConfig):
    """Base of all readers of published feature files."""

    source: ClassVar[Literal["pictures", "file"]] = "file"

    model: str = Field(
        "unknown", description="name of the model that made the features; files of one model are compatible"
    )
    class_names: Path | None = Field(
        None, description="text file with one class name per line, for files with class numbers (objects_vocab.txt)"
    )


class BottomUpTsv(Published):
    """Reads the TSV files of bottom-up-attention (6 columns) and LXMERT (10 columns), also gzipped."""

    type: Literal["bottom_up_tsv"] = "bottom_up_tsv"

    def build(self):
        from .tsv import TsvFile

        return TsvFile(self)


class NpzFolder(Published):
    """Reads folders of NPZ (bottom-up-attention.pytorch) or NPY files (MMF), one file per image.

    Pickles are never opened, since they can run any program: MMF's `_info.npy` and the NPZ's `info` are skipped. An NPY
    file's boxes are read from `<name>_info.json` (bbox, image_width, image_height); without this file they are unknown.
    """

    type: Literal["npz_folder"] = "npz_folder"

    def build(self):
        from .arrays import ArrayFolder

        return ArrayFolder(self)


class LxmertH5(Published):
    """Reads the HDF5 files of bottom-up-attention-vqa: image_features, image_bb, spatial_features, pos_boxes.

    The index from image to row is published as a pickle, of which only numbers, texts, lists and tables are read, since
    a pickle can run any program.
    """

    type: Literal["lxmert_h5"] = "lxmert_h5"
    index: Path = Field(
        description="pickle or JSON file: image id to row, or a list of image ids in the order of the rows"
    )

    def build(self):
        from .arrays import LxmertFile

        return LxmertFile(self)


@mmgen.hookimpl
def register_extractors():
    return [Roi, TimmGrid, Detector, VisualGenome, BottomUpTsv, NpzFolder, LxmertH5]
