"""The extractor of Visual Genome's Faster R-CNN: resizes pictures, gives their regions; loads and saves the network."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from mmgen_vision.cnn import (
    NETWORK,
    LoadedPicture,
    PictureExtractor,
    digest,
    precision,
    read_network,
    save_network,
)
from PIL import Image
from torch.nn import functional

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.parts import Record
from mmgen.reading.torch_files import named_tensors, read_torch_file

from . import PUBLISHED, VisualGenome
from .published_features import read_vocabulary
from .visual_genome_network import PREDICTOR, STRIDE, FasterRcnn, Settings

SETTINGS = Settings()
OBJECTS, ATTRIBUTES = "objects_vocab.txt", "attributes_vocab.txt"


class VisualGenomeRegions(PictureExtractor):
    """Extracts features (R, D) per picture, by decreasing confidence. Names of regions are those of their classes, with
    the most probable attribute, if vocabularies are beside the weights."""

    def __init__(self, config: VisualGenome, saved: Path | None = None) -> None:
        self.config, folder = config, saved or config.weights
        self.network = load(folder / (NETWORK if saved else PUBLISHED))
        self.objects, self.attributes = (
            read_vocabulary(path) if (path := folder / name).exists() else [] for name in (OBJECTS, ATTRIBUTES)
        )
        for file, names, head in ((OBJECTS, self.objects, "cls_score"), (ATTRIBUTES, self.attributes, "attr_score")):
            count = len(self.network.tensors[f"{PREDICTOR}.{head}.weight"]) - 1
            if names and len(names) != count:
                raise DataError(f"{folder / file}: has {len(names)} names, but the network has {count} classes of them")
        fingerprint = {
            "extractor": "visual_genome",
            "model": "faster_rcnn",
            "digest": digest(self.network.tensors),
            "settings": {**asdict(self.network.settings), "max_regions": config.max_regions},
        }
        self.fingerprint = json.loads(json.dumps(fingerprint))
        self.network.to(self.device)

    def save(self, folder: Path) -> None:
        save_network(self.network.tensors, folder)
        for name, words in ((OBJECTS, self.objects), (ATTRIBUTES, self.attributes)):
            (folder / name).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")

    def describe(self, batch: Sequence[LoadedPicture]) -> Iterator[Record]:
        return map(self._record, batch)

    @torch.inference_mode()
    def _record(self, loaded: LoadedPicture) -> Record:
        picture, image = loaded
        pixels = resized(image, self.network.settings).to(self.device)
        with precision(self.device):
            regions = self.network(pixels, self.config.max_regions)
        height, width = pixels.shape[1:]
        boxes = regions.boxes.float().cpu().numpy() / np.array([width, height] * 2, np.float32)
        scores, classes = regions.probabilities.float().max(1)
        names = self._region_names(classes.tolist(), regions.attributes.float())
        class_names = self.objects or [f"class {number}" for number in range(regions.probabilities.shape[1])]
        surest = Classes.surest(tuple(class_names), regions.probabilities.float().cpu().numpy())
        features = regions.features.float().cpu().numpy()
        return Record(picture.key, features, boxes, names, scores.cpu().numpy(), surest)

    def _region_names(self, classes: Sequence[int], attributes: torch.Tensor) -> tuple[str, ...] | None:
        if not self.objects:
            return None
        words = [f"{self.attributes[number]} " if self.attributes else "" for number in attributes.argmax(1).tolist()]
        return tuple(word + self.objects[number] for word, number in zip(words, classes, strict=True))


def resized(image: Image.Image, settings: Settings) -> torch.Tensor:
    """Pixels (3, h, w), blue first, normalised: the shorter side has `min_size`, the longer at most `max_size`; neither
    is shorter than the stride of the maps."""
    scale = settings.min_size / min(image.size)
    scale = min(scale, settings.max_size / max(image.size))
    width, height = (max(int(side * scale + 0.5), STRIDE) for side in image.size)
    pixels = torch.from_numpy(np.array(image)).flip(2).permute(2, 0, 1).float()
    pixels = functional.interpolate(pixels.unsqueeze(0), (height, width), mode="bilinear", align_corners=False)[0]
    return pixels - torch.tensor(settings.pixel_mean).view(3, 1, 1)


def load(path: Path) -> FasterRcnn:
    """The network of the published file, or of one that `save_network` wrote. Raises DataError."""
    if path.name == NETWORK:
        tensors = read_network(path.parent)
    elif path.is_file():
        tensors = named_tensors(read_torch_file(path), path)
    else:
        raise DataError(f"{path}: no such file; give the folder of the published weights")
    try:
        return FasterRcnn(tensors, SETTINGS)
    except KeyError as error:
        raise DataError(f"{path}: not the Faster R-CNN of Visual Genome: it has no {error.args[0]}") from None
