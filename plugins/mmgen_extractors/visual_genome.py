"""The extractor of Visual Genome's Faster R-CNN: resizes pictures, gives their regions; loads and saves the network."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from mmgen_vision.cnn import COMPLETE, NETWORK, digest, extract_records, precision, save_network
from PIL import Image
from torch.nn import functional

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.files import open_tensors
from mmgen.parts import Extractor, FailedImage, Picture, Record
from mmgen.reading.text import read_text
from mmgen.reading.torch_files import named_tensors, read_torch_file

from . import VisualGenome
from .visual_genome_network import STRIDE, FasterRcnn, Settings

SETTINGS = Settings()
OBJECTS, ATTRIBUTES = "objects_vocab.txt", "attributes_vocab.txt"


class VisualGenomeRegions(Extractor):
    """Extracts features (R, D) per picture, by decreasing confidence. Names of regions are those of their classes, with
    the most probable attribute, if vocabularies are beside the weights."""

    def __init__(self, config: VisualGenome, weights: Path) -> None:
        folder = weights.parent
        self.config = config
        self.network = load(weights)
        self.objects, self.attributes = (read_vocabulary(folder / name) for name in (OBJECTS, ATTRIBUTES))
        predictor = self.network.roi_heads["box_predictor"]
        for file, names, head in ((OBJECTS, self.objects, "cls_score"), (ATTRIBUTES, self.attributes, "attr_score")):
            if head in predictor and names and len(names) != (count := predictor[head].out_features - 1):
                raise DataError(f"{folder / file}: has {len(names)} names, but the network has {count} classes of them")
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        fingerprint = {
            "extractor": "visual_genome",
            "model": "faster_rcnn",
            "digest": digest(self.network),
            "settings": {**asdict(self.network.settings), "max_regions": config.max_regions},
        }
        self.fingerprint = json.loads(json.dumps(fingerprint))
        self.network.to(self.device)

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        return extract_records("visual_genome", source, skip, 1, lambda batch: map(self._extract_record, batch))

    def save(self, folder: Path) -> None:
        save_network(self.network, folder)
        for name, words in ((OBJECTS, self.objects), (ATTRIBUTES, self.attributes)):
            (folder / name).write_text("".join(f"{word}\n" for word in words), encoding="utf-8")

    @torch.inference_mode()
    def _extract_record(self, loaded: tuple[Picture, Image.Image]) -> Record:
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
        names, words = self.objects, self.attributes
        if not names:
            return None
        best = attributes.argmax(1).tolist() if words and attributes.shape[1] == len(words) else []
        before = [f"{words[number]} " for number in best] or [""] * len(classes)
        return tuple(word + names[number] for word, number in zip(before, classes, strict=True))


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
    """The network of the published file, or of one that `save_network` wrote, in eval mode. Raises DataError."""
    if path.name == NETWORK:
        with open_tensors(path, COMPLETE, COMPLETE, DataError) as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    elif path.is_file():
        tensors = named_tensors(read_torch_file(path), path)
    else:
        raise DataError(f"{path}: no such file; give the folder of the published weights")
    try:
        network = FasterRcnn({name: tensor.shape for name, tensor in tensors.items()}, SETTINGS)
        network.load_state_dict(tensors)
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not the Faster R-CNN of Visual Genome: {reason}") from None
    return network.eval().requires_grad_(False)


def read_vocabulary(path: Path) -> list[str]:
    """The first name of every line ("stop sign,stopsign"); empty without the file."""
    if not path.exists():
        return []
    return [line.split(",")[0].strip() for line in read_text(path).split("\n") if line.strip()]
