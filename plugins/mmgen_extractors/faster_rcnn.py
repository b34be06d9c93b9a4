"""The extractor of torchvision's Faster R-CNN (Ren et al., 2015): detections with the box head's features."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from mmgen_vl.cnn import (
    SeededRandom,
    digest,
    extract_records,
    load_network,
    precision,
    save_network,
    weights_name,
)
from PIL import Image
from safetensors.torch import load_file
from torchvision.models import get_model, get_model_weights, list_models
from torchvision.transforms.functional import pil_to_tensor

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import FasterRcnn


class TorchvisionDetector(Extractor):
    """Extracts features (R, width of the box head) per picture, by decreasing confidence."""

    def __init__(self, config: FasterRcnn, folder: Path | None = None) -> None:
        self.config = config
        self.model, self.names = load(config, folder)
        self.model.roi_heads.detections_per_img = config.max_regions
        self.model.roi_heads.score_thresh = config.min_score
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        settings = {"model": config.model, "weights": weights_name(config.weights), "seed": config.seed}
        settings |= {"max_regions": config.max_regions, "min_score": config.min_score}
        self.fingerprint = {
            "extractor": "faster_rcnn",
            "model": config.model,
            "digest": digest(self.model),
            "settings": settings,
        }
        self.model.to(self.device)

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        return extract_records("faster_rcnn", source, skip, self.config.batch_size, self._detect)

    def save(self, folder: Path) -> None:
        save_network(self.model, folder)

    @torch.inference_mode()
    def _detect(self, batch: Sequence[tuple[Picture, Image.Image]]) -> Iterator[Record]:
        """Detect regions. Pictures of one size form a batch, so that no padding is needed."""
        records: dict[int, Record] = {}
        for size in dict.fromkeys(image.size for _, image in batch):
            indices = [place for place, (_, image) in enumerate(batch) if image.size == size]
            images = [pil_to_tensor(batch[place][1]).to(self.device).float() / 255 for place in indices]
            with precision(self.device):
                regions = self._regions(images)
            for index, (features, boxes, classes, scores, probabilities) in zip(indices, regions, strict=True):
                names = tuple(
                    self.names[number] if number < len(self.names) else f"class {number}"
                    for number in range(probabilities.shape[1])
                )
                class_names = tuple(names[number] for number in classes.tolist())
                arrays = [values.float().cpu().numpy() for values in (features, boxes, scores, probabilities[:, 1:])]
                surest = Classes.surest(names[1:], arrays[3])  # the first is the background
                records[index] = Record(batch[index][0].key, arrays[0], arrays[1], class_names, arrays[2], surest)
        yield from (records[place] for place in range(len(batch)))

    def _regions(self, images: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, ...]]:
        """For every image: features (R, D), relative boxes (R, 4), classes and scores (R,), and distributions over all
        classes (R, C). The distributions are computed from the features of the final boxes, unlike the scores."""
        model, heads = self.model, self.model.roi_heads
        resized, _ = model.transform(list(images))
        maps = model.backbone(resized.tensors)
        proposals, _ = model.rpn(resized, maps)
        detections, _ = heads(maps, proposals, resized.image_sizes)
        boxes = [detection["boxes"] for detection in detections]
        pooled = heads.box_head(heads.box_roi_pool(maps, boxes, resized.image_sizes))  # (sum R, D)
        counts = [len(inner) for inner in boxes]
        features_by_image, probabilities_by_image = (
            pooled.split(counts),
            heads.box_predictor(pooled)[0].float().softmax(-1).split(counts),
        )
        return [
            (
                features,
                detection["boxes"] / torch.tensor([width, height] * 2, device=self.device),
                detection["labels"],
                detection["scores"],
                probabilities,
            )
            for features, probabilities, detection, (height, width) in zip(
                features_by_image, probabilities_by_image, detections, resized.image_sizes, strict=True
            )
        ]


def load(config: FasterRcnn, folder: Path | None = None) -> tuple[Any, list[str]]:
    """The network in eval mode, and its known class names. `folder`: the folder of a saved network."""
    if config.model not in list_models():
        raise DataError(
            f"torchvision has no model '{config.model}'; choose from: "
            f"{', '.join(name for name in list_models() if name.startswith('fasterrcnn_'))}"
        )
    published = get_model_weights(config.model).DEFAULT
    with SeededRandom(config.seed):
        model = get_model(config.model, weights=None, weights_backbone=None)
    try:
        if folder is not None:
            load_network(model, folder)
        elif config.weights == "pretrained":
            model.load_state_dict(published.get_state_dict(progress=False, check_hash=True, weights_only=True))
        elif config.weights != "random":
            if Path(config.weights).suffix != ".safetensors":
                raise DataError(f'weights \'{config.weights}\': must be "pretrained", "random" or a .safetensors file')
            model.load_state_dict(load_file(Path(config.weights)))
    except DataError:
        raise
    except Exception as error:  # downloads, damaged files and other models' weights fail in many ways
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"'{config.model}' with weights '{config.weights}' cannot be loaded: {reason}") from None
    return model.eval().requires_grad_(False), list(published.meta["categories"])
