"""Faster R-CNN of torchvision (Ren et al., 2015): regions are its detections, features its box head's of the final
boxes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import torch
from PIL import Image
from safetensors.torch import load_file
from torchvision.models import get_model, get_model_weights, list_models
from torchvision.transforms.functional import pil_to_tensor

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.features.cnn import Drawn, described, digest, precision, weights_name
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import FasterRcnn


class TorchvisionDetector(Extractor):
    """(R, width of the box head) features a picture, the surest region first."""

    def __init__(self, config: FasterRcnn) -> None:
        self.config = config
        self.model, self.names = load(config)
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
        if isinstance(source, Path):
            raise DataError(f"{source}: 'faster_rcnn' makes features from pictures, not from a file")
        yield from described(source, skip, self.config.batch_size, self._detected)

    @torch.inference_mode()
    def _detected(self, batch: Sequence[tuple[Picture, Image.Image]]) -> Iterator[Record]:
        """Pictures of one size go together, so that nothing needs padding."""
        records: dict[int, Record] = {}
        for size in dict.fromkeys(image.size for _, image in batch):
            places = [place for place, (_, image) in enumerate(batch) if image.size == size]
            images = [pil_to_tensor(batch[place][1]).to(self.device).float() / 255 for place in places]
            with precision(self.device):
                found = self._regions(images)
            for place, (features, boxes, classes, scores, chances) in zip(places, found, strict=True):
                names = tuple(
                    self.names[number] if number < len(self.names) else f"class {number}"
                    for number in range(chances.shape[1])
                )
                labels = tuple(names[number] for number in classes.tolist())
                arrays = [values.float().cpu().numpy() for values in (features, boxes, scores, chances[:, 1:])]
                surest = Classes.surest(names[1:], arrays[3])  # the first is the background
                records[place] = Record(batch[place][0].key, arrays[0], arrays[1], labels, arrays[2], surest)
        yield from (records[place] for place in range(len(batch)))

    def _regions(self, images: Sequence[torch.Tensor]) -> list[tuple[torch.Tensor, ...]]:
        """Features (R, D), relative boxes (R, 4), classes and scores (R,) of every image; and the distributions over
        all classes (R, C), those of the features, since what the detections were chosen by is of other boxes."""
        model, heads = self.model, self.model.roi_heads
        resized, _ = model.transform(list(images))
        maps = model.backbone(resized.tensors)
        proposals, _ = model.rpn(resized, maps)
        detections, _ = heads(maps, proposals, resized.image_sizes)
        boxes = [detection["boxes"] for detection in detections]
        pooled = heads.box_head(heads.box_roi_pool(maps, boxes, resized.image_sizes))  # (sum R, D)
        counts = [len(inner) for inner in boxes]
        split, chances = pooled.split(counts), heads.box_predictor(pooled)[0].float().softmax(-1).split(counts)
        return [
            (
                features,
                detection["boxes"] / torch.tensor([width, height] * 2, device=self.device),
                detection["labels"],
                detection["scores"],
                own,
            )
            for features, own, detection, (height, width) in zip(
                split, chances, detections, resized.image_sizes, strict=True
            )
        ]


def load(config: FasterRcnn) -> tuple[Any, list[str]]:
    """The network in eval mode, and the names of its classes as far as they are known."""
    if config.model not in list_models():
        raise DataError(
            f"torchvision knows no '{config.model}'; there are: "
            f"{', '.join(name for name in list_models() if name.startswith('fasterrcnn_'))}"
        )
    published = get_model_weights(config.model).DEFAULT
    with Drawn(config.seed):
        model = get_model(config.model, weights=None, weights_backbone=None)
    try:
        if config.weights == "pretrained":
            model.load_state_dict(published.get_state_dict(progress=False, check_hash=True, weights_only=True))
        elif config.weights != "random":
            if Path(config.weights).suffix != ".safetensors":
                raise DataError(
                    f'weights \'{config.weights}\': neither "pretrained" nor "random" nor a .safetensors file'
                )
            model.load_state_dict(load_file(config.weights))
    except DataError:
        raise
    except Exception as error:  # downloads, damaged files and other models' weights fail in many ways
        reason = str(error).strip().partition("\n")[0]
        raise DataError(f"'{config.model}' with weights '{config.weights}' cannot be loaded: {reason}") from None
    return model.eval().requires_grad_(False), list(published.meta["categories"])
