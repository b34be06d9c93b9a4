"""The extractor of DETR-like detectors (Carion et al., 2020): selected queries are regions with their last states."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from mmgen_vision.cnn import COMPLETE, LoadedPicture, PictureExtractor, digest, precision
from torch import Tensor
from torchvision.ops import box_convert

from mmgen.errors import DataError
from mmgen.features.classes import Classes
from mmgen.files import model_folder
from mmgen.oom import out_of_memory
from mmgen.parts import Record

from . import Detector


class TransformersDetector(PictureExtractor):
    """Extracts features (R, width of the decoder) per picture, by decreasing confidence."""

    def __init__(self, config: Detector, folder: Path | None = None) -> None:
        self.config, self.source, self.batch_size = config, folder or config.model, config.batch_size
        self.model, self.processor = load(config.model) if folder is None else load_saved(folder)
        self.names = self.model.config.id2label
        self.first = int(self.names.get(0) == "None")  # Objects365 counts its classes from 1
        name = "local" if Path(config.model).exists() else config.model  # no path of this machine in the fingerprint
        settings = {"model": name, "max_regions": config.max_regions, "min_score": config.min_score}
        self.fingerprint = {
            "extractor": "detector",
            "model": self.model.config.model_type,
            "digest": digest(self.model.state_dict()),
            "settings": settings,
        }
        self.model.to(self.device)

    def save(self, folder: Path) -> None:
        self.model.save_pretrained(folder)
        self.processor.save_pretrained(folder)

    def describe(self, batch: Sequence[LoadedPicture]) -> Sequence[Record]:
        """Raises DataError for errors of transformers, whose settings are checked by a picture only."""
        try:
            return list(self._regions_of(batch))
        except Exception as error:
            if out_of_memory(error):
                raise
            reason = " ".join(str(error).split())[:300] or type(error).__name__
            raise DataError(
                f"detector '{self.source}': picture '{batch[0][0].key}' cannot be processed: {reason}; its settings "
                "are damaged, or do not fit its network"
            ) from None

    @torch.inference_mode()
    def _regions_of(self, batch: Sequence[LoadedPicture]) -> Iterator[Record]:
        """Detect regions. Pictures of one size after preprocessing form a batch, so that no padding is needed."""
        pixels = [self.processor(images=image, return_tensors="pt")["pixel_values"] for _, image in batch]
        records: dict[int, Record] = {}
        for shape in dict.fromkeys(tensor.shape for tensor in pixels):
            indices = [place for place, tensor in enumerate(pixels) if tensor.shape == shape]
            with precision(self.device):
                output = self.model(pixel_values=torch.cat([pixels[place] for place in indices]).to(self.device))
            boxes = box_convert(output.pred_boxes.float(), "cxcywh", "xyxy").clamp(0, 1)  # (B, Q, 4)
            # the states of queries are last if patches have states too (YOLOS)
            states = output.last_hidden_state[:, -boxes.shape[1] :].float()  # (B, Q, D)
            probabilities = self._probabilities(output.logits.float())  # (B, Q, classes)
            for row, index in enumerate(indices):
                records[index] = self._build_record(batch[index][0].key, states[row], boxes[row], probabilities[row])
        yield from (records[place] for place in range(len(batch)))

    def _probabilities(self, logits: Tensor) -> Tensor:
        """Class probabilities (..., C). DETR's softmax has an extra class "no object"; later models use sigmoids."""
        has_background = logits.shape[-1] == self.model.config.num_labels + 1
        probabilities = logits.softmax(-1)[..., :-1] if has_background else logits.sigmoid()
        return probabilities[..., self.first :]

    def _build_record(self, key: str, states: Tensor, boxes: Tensor, probabilities: Tensor) -> Record:
        scores, classes = probabilities.max(-1)  # (Q,)
        order = scores.argsort(descending=True, stable=True)[: self.config.max_regions]
        order = order[scores[order] >= self.config.min_score]
        names = tuple(
            str(self.names.get(number, number)) for number in range(self.first, self.first + probabilities.shape[-1])
        )
        class_names = tuple(names[number] for number in classes[order].tolist())
        selected = probabilities[order]
        selected = selected / selected.sum(-1, keepdim=True).clamp(min=1)  # sigmoids may add up to more than 1
        surest = Classes.surest(names, selected.cpu().numpy())
        arrays = [values[order].cpu().numpy() for values in (states, boxes, scores)]
        return Record(key, arrays[0], arrays[1], class_names, arrays[2], surest)


def load(model: str, **options):
    """Load a detector and its image processor. Raises DataError if that fails, or if weights are not safetensors.
    `options` of transformers."""
    from transformers import AutoImageProcessor, AutoModelForObjectDetection

    try:
        folder = model_folder(model)
        processor = AutoImageProcessor.from_pretrained(folder, trust_remote_code=False)
        network = AutoModelForObjectDetection.from_pretrained(
            folder, use_safetensors=True, trust_remote_code=False, dtype=torch.float32, **options
        )
    except Exception as error:  # errors of the hub and of transformers, of many kinds
        reason = str(error).strip().partition("\n")[0]
        raise DataError(
            f"detector '{model}' cannot be loaded: {reason}; give a hub name or a local folder with safetensors"
        ) from None
    network.config.name_or_path = ""  # a saved extractor must not contain a path of this machine
    return network.eval().requires_grad_(False), processor


def load_saved(folder: Path):
    """Load the detector that `TransformersDetector.save` wrote. The number of weights is compared with the files before
    memory is taken. Raises DataError."""
    from transformers import AutoConfig, AutoModelForObjectDetection

    if not (folder / "config.json").is_file():  # otherwise transformers would take the path for a hub name
        raise DataError(f"{folder}: config.json of the detector is missing; {COMPLETE}")
    try:
        settings = AutoConfig.from_pretrained(folder, trust_remote_code=False, local_files_only=True)
        settings.use_pretrained_backbone, settings._attn_implementation = False, None  # which fetch weights and code
        with torch.device("meta"):
            network = AutoModelForObjectDetection.from_config(settings, trust_remote_code=False)
        required = sum(parameter.nbytes for parameter in network.parameters())
        stored = sum(path.stat().st_size for path in folder.glob("*.safetensors"))
        if required > stored:
            raise ValueError(f"config.json describes {required:,} bytes of weights, but the files have {stored:,}")
    except Exception as error:  # errors of transformers and timm, of many kinds
        reason = " ".join(str(error).split())[:300] or type(error).__name__
        raise DataError(f"{folder}: damaged: {reason}; {COMPLETE}") from None
    return load(str(folder), config=settings, local_files_only=True)
