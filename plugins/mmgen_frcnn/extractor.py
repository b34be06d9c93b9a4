"""The extractor of Visual Genome's Faster R-CNN: resizes pictures, gives their regions; loads and saves the network."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from mmgen_vl.cnn import digest, extract_records, precision, with_license
from PIL import Image
from safetensors.torch import save
from torch.nn import functional

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.features.licenses import UNKNOWN, licenses
from mmgen.files import open_tensors, write_atomically
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import VisualGenome
from .network import MEANINGS, STRIDE, FasterRcnn, Settings, settings_of

FILE = "visual_genome.safetensors"  # in an export
TOP = 10  # classes of a region that are kept


class VisualGenomeRegions(Extractor):
    """Extracts features (R, D) per picture, by decreasing confidence. Names of regions are those of their classes, with
    the most probable attribute, if the converted files had vocabularies."""

    def __init__(self, config: VisualGenome, path: Path) -> None:
        self.config = config
        self.network, self.about = load(path)
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        fingerprint = {
            "extractor": "visual_genome",
            "model": "faster_rcnn",
            "digest": digest(self.network),
            "settings": {**asdict(self.network.settings), "max_regions": config.max_regions},
        }
        self.fingerprint = json.loads(json.dumps(with_license(fingerprint, UNKNOWN)))
        self.license = licenses(self.fingerprint)
        self.network.to(self.device)

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        return extract_records("visual_genome", source, skip, 1, lambda batch: map(self._extract_record, batch))

    def save(self, folder: Path) -> None:
        write(folder / FILE, {name: t.cpu() for name, t in self.network.state_dict().items()}, self.about)

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
        class_names = self.about["classes"] or [f"class {number}" for number in range(regions.probabilities.shape[1])]
        surest = Classes.surest(tuple(class_names), regions.probabilities.float().cpu().numpy())
        features = regions.features.float().cpu().numpy()
        return Record(picture.key, features, boxes, names, scores.cpu().numpy(), surest)

    def _region_names(self, classes: Sequence[int], attributes: torch.Tensor) -> tuple[str, ...] | None:
        if not (names := self.about["classes"]):
            return None
        words = self.about["attributes"]
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
    mean, deviation = (torch.tensor(values).view(3, 1, 1) for values in (settings.pixel_mean, settings.pixel_std))
    return (pixels - mean) / deviation


def load(path: Path) -> tuple[FasterRcnn, dict[str, Any]]:
    """The network of a converted file in eval mode, and what the file says besides. Raises DataError."""
    again = "convert the published files again with `mmgen frcnn`"
    with open_tensors(path, "convert the published files with `mmgen frcnn`", again, DataError) as file:
        metadata = dict(file.metadata() or {})
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if metadata.get("crc32") != _checksum(tensors, metadata["about"]):
            raise ValueError("checksum mismatch")
        about = json.loads(metadata["about"])
    return network_of(tensors, about, path), about


def network_of(tensors: dict[str, torch.Tensor], about: dict[str, Any], path: Path) -> FasterRcnn:
    """The network of tensors by the published names. Raises DataError for tensors that do not fit."""
    known = {field.name for field in fields(Settings)}
    settings = settings_of({name: value for name, value in about["settings"].items() if name in known})
    if isinstance(settings, str):
        raise DataError(f"{path}: setting '{settings}' must be {MEANINGS[settings]}; convert the published files again")
    try:
        network = FasterRcnn({name: tensor.shape for name, tensor in tensors.items()}, settings)
        network.load_state_dict(tensors)
    except (KeyError, RuntimeError, ValueError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(f"{path}: not the Faster R-CNN of Visual Genome: {reason}") from None
    return network.eval().requires_grad_(False)


def write(path: Path, tensors: dict[str, torch.Tensor], about: dict[str, Any]) -> None:
    """Write a converted file, which `load` reads."""
    tensors, text = {name: tensor.contiguous() for name, tensor in tensors.items()}, json.dumps(about)
    content = save(tensors, {"about": text, "crc32": _checksum(tensors, text)})
    write_atomically(path, lambda partial: partial.write_bytes(content))


def _checksum(tensors: Mapping[str, torch.Tensor], about: str) -> str:
    """CRC-32 over names, shapes, values and the text."""
    total = zlib.crc32(about.encode())
    for name, tensor in sorted(tensors.items()):
        total = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), total)
        total = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, total)
    return f"{total:08x}"
