"""Image regions: detector features from a store, the extractors that fill it, and readers of the published files."""

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field, SerializeAsAny

import mmgen
from mmgen.configs import PathOrName
from mmgen.features.cnn_config import CnnConfig


class Regions(mmgen.FeaturesConfig):
    """Regions of an image: their features and boxes from an HDF5 store, through one linear layer."""

    type: Literal["regions"] = "regions"
    hides = "regions"

    max_regions: int = Field(36, ge=1, description="regions an image at most; a store has them by falling confidence")

    def build(self, backbone):
        from .embedder import RegionEmbedder

        return RegionEmbedder(self, backbone)


class Roi(CnnConfig):
    """Features of a timm network, pooled over boxes: a picture's own, a detector's, or spread over the picture.

    Settings that are left open follow from the weights. Pretrained weights: the coarsest level, averaged over a box.
    Random weights: the finest level in 3 x 3 parts of a box, because later random layers lose what the first one has.
    """

    type: Literal["roi"] = "roi"
    detector: SerializeAsAny[mmgen.ExtractorConfig] | None = Field(
        None, description="finds the boxes of pictures that have none"
    )
    spread: int = Field(
        4,
        ge=1,
        le=10,
        description="boxes without a detector: the whole picture, its 2 x 2 parts, and so on up to this many by this "
        "many",
    )

    def build(self):
        from .roi import RoiFeatures

        return RoiFeatures(self)


class Detections(mmgen.ExtractorConfig):
    """What all detectors share."""

    max_regions: int = Field(36, ge=1, description="regions kept, the surest first")
    min_score: float = Field(0.0, ge=0, lt=1, description="less sure regions are dropped")
    batch_size: int = Field(
        8, ge=1, description="pictures at a time; those of one size go through the network together"
    )


class Detector(Detections):
    """Regions of a DETR-like detector of transformers; features are the decoder's states of the kept queries."""

    type: Literal["detector"] = "detector"
    model: Annotated[str, PathOrName()] = Field(
        "facebook/detr-resnet-50", description="hub name or local folder; its weights must be safetensors"
    )

    def build(self):
        from .detector import TransformersDetector

        return TransformersDetector(self)


class FasterRcnn(Detections):
    """Regions of a Faster R-CNN of torchvision; features are the box head's, pooled over the final boxes."""

    type: Literal["faster_rcnn"] = "faster_rcnn"
    model: str = Field(
        "fasterrcnn_resnet50_fpn_v2", pattern="^fasterrcnn_", description="name of a torchvision detector"
    )
    weights: str = Field(
        "pretrained",
        description='"pretrained" (downloaded by torchvision), "random" (from the seed), or a local safetensors file',
    )
    seed: int = Field(0, ge=0, description="of random weights")

    def build(self):
        from .faster_rcnn import TorchvisionDetector

        return TorchvisionDetector(self)


class Published(mmgen.ExtractorConfig):
    """What readers of published files share."""

    source: ClassVar[Literal["pictures", "file"]] = "file"

    model: str = Field("unknown", description="what made the features, in a word; files of one model count as alike")
    labels: Path | None = Field(
        None, description="names of the classes, one a line, where the file has numbers only (objects_vocab.txt)"
    )


class BottomUpTsv(Published):
    """Reads the TSV files of bottom-up-attention (6 columns) and LXMERT (10 columns), also gzipped."""

    type: Literal["bottom_up_tsv"] = "bottom_up_tsv"

    def build(self):
        from .tsv import TsvFile

        return TsvFile(self)


class NpzFolder(Published):
    """Reads folders of NPZ (bottom-up-attention.pytorch) or NPY files (MMF), one an image.

    Pickles are never opened, since they can run any program: MMF's `_info.npy` and the NPZ's `info` are passed over. An
    NPY file's boxes are read from `<name>_info.json` (bbox, image_width, image_height), and stay unknown without it.
    """

    type: Literal["npz_folder"] = "npz_folder"

    def build(self):
        from .arrays import ArrayFolder

        return ArrayFolder(self)


class LxmertH5(Published):
    """Reads the HDF5 files of bottom-up-attention-vqa: image_features, image_bb, spatial_features, pos_boxes.

    Their index from image to row is published as a pickle, which is never opened, since it can run any program; write
    it as JSON once:  json.dump({str(k): v for k, v in index.items()}, open("index.json", "w"))
    """

    type: Literal["lxmert_h5"] = "lxmert_h5"
    index: Path = Field(description="JSON: image id to row, or a list of image ids in the rows' order")

    def build(self):
        from .lxmert import LxmertFile

        return LxmertFile(self)


@mmgen.hookimpl
def register_embedders():
    return [Regions]


@mmgen.hookimpl
def register_extractors():
    return [Roi, Detector, FasterRcnn, BottomUpTsv, NpzFolder, LxmertH5]
