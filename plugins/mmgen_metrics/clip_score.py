"""The metric CLIPScore: embeds the pictures and texts of a split, some at a time, on the run's device."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean
from typing import Any

import torch
from mmgen_vision.pictures import picture_of
from torch import Tensor
from transformers import AutoImageProcessor, AutoModel, AutoTokenizer

from mmgen.errors import DataError
from mmgen.examples import Example, Generation, Scores
from mmgen.features.images import load_image
from mmgen.parts import Metric, Picture

from . import ClipScore

SCALE = 2.5  # section 3.1 of the paper


class ClipScoreMetric(Metric):
    """Raises DataError if the model cannot be loaded."""

    def __init__(self, config: ClipScore) -> None:
        self.config = config
        try:
            self.model = AutoModel.from_pretrained(
                config.model, dtype=torch.float32, use_safetensors=True, trust_remote_code=False
            ).eval()
            self.tokenizer = AutoTokenizer.from_pretrained(config.model, trust_remote_code=False)
            self.processor = AutoImageProcessor.from_pretrained(config.model, trust_remote_code=False)
        except Exception:  # any exception of transformers and safetensors about a missing or damaged file
            raise DataError(
                f"clip_score: '{config.model}' cannot be loaded; set model to a folder or hub name of a CLIP model"
            ) from None
        if not hasattr(self.model, "get_image_features"):
            raise DataError(f"clip_score: '{config.model}' embeds no pictures; set model to a CLIP model")
        self.device = torch.device("cpu")

    def prepare(self, pictures: Callable[[Sequence[Example]], Mapping[str, Picture]], device: torch.device) -> None:
        self.pictures, self.device = pictures, device

    @torch.inference_mode()
    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        pictures = self.pictures(examples)
        model, values = self.model.to(self.device), list[float]()
        for first in range(0, len(examples), self.config.batch_size):
            batch = slice(first, first + self.config.batch_size)
            images = [load_image(picture_of(example, pictures, "clip_score")) for example in examples[batch]]
            texts = [self.config.prompt + generation.text for generation in generations[batch]]
            pixels = self.processor(images=images, return_tensors="pt").to(self.device)
            longest = model.config.text_config.max_position_embeddings
            tokens = self.tokenizer(  # "<|endoftext|>" in a text is no end
                texts, padding=True, truncation=True, max_length=longest, return_tensors="pt", split_special_tokens=True
            )
            ids = {name: tokens[name].to(self.device) for name in ("input_ids", "attention_mask")}
            similarity = (_unit(model.get_image_features(**pixels)) * _unit(model.get_text_features(**ids))).sum(1)
            values += (100 * SCALE * similarity.clamp(min=0)).tolist()
        model.to("cpu")
        return Scores({"clip_score": fmean(values)}, {"clip_score": values})


def _unit(features: Any) -> Tensor:
    """(B, D) of length 1. Newer transformers return an object around the features."""
    tensor: Tensor = getattr(features, "pooler_output", features)
    return tensor / tensor.norm(dim=1, keepdim=True)
