"""DETR-like detectors of transformers (Carion et al., 2020): each query that is kept is a region, its last state the
feature."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor
from torchvision.ops import box_convert

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.features.cnn import described, digest, precision
from mmgen.parts import Extractor, FailedImage, Picture, Record

from . import Detector


class TransformersDetector(Extractor):
    """(R, width of the decoder) features a picture, the surest region first."""

    def __init__(self, config: Detector) -> None:
        self.config = config
        self.model, self.processor = load(config.model)
        self.names = self.model.config.id2label
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        marks = digest(self.model)
        self.model.to(self.device)
        name = "local" if Path(config.model).exists() else config.model  # a path means nothing on another machine
        settings = {"model": name, "max_regions": config.max_regions, "min_score": config.min_score}
        self.fingerprint = {
            "extractor": "detector",
            "model": self.model.config.model_type,
            "digest": marks,
            "settings": settings,
        }

    def records(
        self, source: Iterable[Picture] | Path, skip: frozenset[str] = frozenset()
    ) -> Iterator[Record | FailedImage]:
        if isinstance(source, Path):
            raise DataError(f"{source}: 'detector' makes features from pictures, not from a file")
        yield from described(source, skip, self.config.batch_size, self._detected)

    @torch.inference_mode()
    def _detected(self, batch: Sequence[tuple[Picture, Image.Image]]) -> Iterator[Record]:
        """Pictures that come out of the processor in one size go together, so that nothing needs padding."""
        pixels = [self.processor(images=image, return_tensors="pt")["pixel_values"] for _, image in batch]
        records: dict[int, Record] = {}
        for shape in dict.fromkeys(tensor.shape for tensor in pixels):
            places = [place for place, tensor in enumerate(pixels) if tensor.shape == shape]
            with precision(self.device):
                output = self.model(pixel_values=torch.cat([pixels[place] for place in places]).to(self.device))
            boxes = box_convert(output.pred_boxes.float(), "cxcywh", "xyxy").clamp(0, 1)  # (B, Q, 4)
            # the queries' states come last where patches have states too (YOLOS)
            states = output.last_hidden_state[:, -boxes.shape[1] :].float()  # (B, Q, D)
            chances = self._chances(output.logits.float())  # (B, Q, classes)
            for row, place in enumerate(places):
                records[place] = self._record(batch[place][0].key, states[row], boxes[row], chances[row])
        yield from (records[place] for place in range(len(batch)))

    def _chances(self, logits: Tensor) -> Tensor:
        """Of every class; DETR's softmax has one more, for nothing at all, which later models replaced by sigmoids."""
        nothing = logits.shape[-1] == self.model.config.num_labels + 1
        return logits.softmax(-1)[..., :-1] if nothing else logits.sigmoid()

    def _record(self, key: str, states: Tensor, boxes: Tensor, chances: Tensor) -> Record:
        scores, classes = chances.max(-1)  # (Q,)
        order = scores.argsort(descending=True, stable=True)[: self.config.max_regions]
        order = order[scores[order] >= self.config.min_score]
        names = tuple(str(self.names.get(number, number)) for number in range(chances.shape[-1]))
        labels = tuple(names[number] for number in classes[order].tolist())
        kept = chances[order]
        kept = kept / kept.sum(-1, keepdim=True).clamp(min=1)  # sigmoids' may be more than 1 together
        surest = Classes.surest(names, kept.cpu().numpy())
        arrays = [values[order].cpu().numpy() for values in (states, boxes, scores)]
        return Record(key, arrays[0], arrays[1], labels, arrays[2], surest)


def load(model: str):
    """A detector and its image processor. Raises DataError when there is none, or its weights are not safetensors."""
    from transformers import AutoImageProcessor, AutoModelForObjectDetection

    try:
        processor = AutoImageProcessor.from_pretrained(model, trust_remote_code=False)
        network = AutoModelForObjectDetection.from_pretrained(
            model, use_safetensors=True, trust_remote_code=False, dtype=torch.float32
        )
    except Exception as error:  # the hub's and transformers' own, of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"detector '{model}' cannot be loaded: {reason}; give a hub name or a local folder with safetensors"
        ) from None
    return network.eval().requires_grad_(False), processor
