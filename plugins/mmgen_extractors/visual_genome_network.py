"""The network of Visual Genome's Faster R-CNN: ResNet-C4, region proposals, and a dilated last stage over boxes.

Parameters have the names of the published files; sizes follow from the weights.

Facts are from Anderson et al., 2018 (section 3.1) and the published PyTorch code (LXMERT's examples, Apache 2.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional
from torchvision.ops import clip_boxes_to_image, nms, roi_pool

STRIDE = 16  # of the maps of the stage res4, in pixels
HEAD, PREDICTOR = "proposal_generator.rpn_head", "roi_heads.box_predictor"
ANCHORS = "proposal_generator.anchor_generator.cell_anchors.0"
PARTS = (
    "backbone.stem.conv1.weight",
    *(f"backbone.{stage}.0.conv1.weight" for stage in ("res2", "res3", "res4")),
    *(f"{HEAD}.{name}.weight" for name in ("conv", "objectness_logits", "anchor_deltas")),
    *(ANCHORS, "roi_heads.res5.0.conv1.weight"),
    *(f"{PREDICTOR}.{name}.weight" for name in ("cls_score", "bbox_pred", "cls_embedding", "fc_attr", "attr_score")),
)
LARGEST_SCALE = math.log(1000 / 16)  # of a box's width or height, by which a proposal changes

BOX_WEIGHTS = (10.0, 10.0, 5.0, 5.0)  # of the last deltas of boxes


@dataclass(frozen=True)
class Settings:
    """What does not follow from the weights, as in the published config.yaml."""

    pixel_mean: tuple[float, float, float] = (102.9801, 115.9465, 122.7717)  # blue, green, red
    min_size: int = 800  # shorter side of the picture, in pixels
    max_size: int = 1333
    proposals_before: int = 6000  # before suppression
    proposals: int = 300
    proposal_overlap: float = 0.7
    overlaps: tuple[float, ...] = (0.5, 0.6, 0.7)  # the first that leaves enough counts
    pooled: int = 14
    min_regions: int = 36


class Detections(NamedTuple):
    """The regions of a picture, by decreasing confidence."""

    boxes: Tensor  # (R, 4), in pixels of the resized picture
    features: Tensor  # (R, D)
    probabilities: Tensor  # (R, C), of classes; the rest is the background
    attributes: Tensor  # (R, A) probabilities


class FasterRcnn:
    """See the module. `tensors`: the parameters, by their published names. Raises KeyError for a missing one."""

    def __init__(self, tensors: Mapping[str, Tensor], settings: Settings) -> None:
        self.settings = settings
        self.tensors = {name: t.float() if t.is_floating_point() else t for name, t in tensors.items()}
        if missing := [name for name in PARTS if name not in tensors or tensors[name].ndim < 2]:
            raise KeyError(missing[0])

    def to(self, device: torch.device) -> None:
        self.tensors = {name: tensor.to(device) for name, tensor in self.tensors.items()}

    def linear(self, name: str, x: Tensor) -> Tensor:
        """A linear layer of the predictor."""
        weight, bias = (self.tensors[f"{PREDICTOR}.{name}.{part}"] for part in ("weight", "bias"))
        return functional.linear(x, weight, bias)

    def convolution(self, name: str, x: Tensor, stride: int = 1, dilation: int = 1) -> Tensor:
        """A convolution, and a batch norm if the convolution has no bias."""
        weight, bias = self.tensors[f"{name}.weight"], self.tensors.get(f"{name}.bias")
        x = functional.conv2d(x, weight, bias, stride, dilation * (weight.shape[-1] // 2), dilation)
        if bias is not None:
            return x
        parts = ("running_mean", "running_var", "weight", "bias")
        mean, variance, factor, shift = (self.tensors[f"{name}.norm.{part}"] for part in parts)
        return functional.batch_norm(x, mean, variance, factor, shift)

    def stage(self, name: str, x: Tensor, stride: int = 1, dilation: int = 1) -> Tensor:
        """The blocks of a stage of ResNet: 1 x 1, with the stride in the first block, 3 x 3, 1 x 1."""
        block = f"{name}.0"
        while f"{block}.conv1.weight" in self.tensors:
            inner = self.convolution(f"{block}.conv1", x, stride).relu()
            inner = self.convolution(f"{block}.conv2", inner, 1, dilation).relu()
            inner = self.convolution(f"{block}.conv3", inner)
            shortened = f"{block}.shortcut.weight" in self.tensors
            x = functional.relu(inner + (self.convolution(f"{block}.shortcut", x, stride) if shortened else x))
            stride, block = 1, f"{name}.{int(block.rpartition('.')[2]) + 1}"
        return x

    def __call__(self, pixels: Tensor, limit: int) -> Detections:
        """The regions of one picture, at most `limit`: pixels (3, h, w), blue first, resized and normalised."""
        height, width = pixels.shape[1:]
        maps = self._maps(pixels.unsqueeze(0))
        proposals = self._proposals(maps, (height, width))
        features = self._features(maps, proposals)
        logits = self.linear("cls_score", features)
        probabilities = logits.softmax(-1)[:, :-1]  # the last is the background
        scores, classes = probabilities.max(1)
        deltas = self.linear("bbox_pred", features).unflatten(1, (-1, 4))  # (R, C or 1, 4)
        chosen = classes if deltas.shape[1] > 1 else torch.zeros_like(classes)
        moved = apply_deltas(deltas[torch.arange(len(deltas)), chosen], proposals, BOX_WEIGHTS)
        boxes = clip_boxes_to_image(moved, (height, width))
        keep = torch.zeros(0, dtype=torch.long)
        for overlap in self.settings.overlaps:
            keep = nms(boxes, scores, overlap)[:limit]
            if len(keep) >= min(self.settings.min_regions, limit):
                break
        attributes = self._attributes(features, logits)
        return Detections(boxes[keep], features[keep], probabilities[keep], attributes[keep])

    def _maps(self, pixels: Tensor) -> Tensor:
        x = self.convolution("backbone.stem.conv1", pixels, 2).relu()
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        for name, stride in (("res2", 1), ("res3", 2), ("res4", 2)):
            x = self.stage(f"backbone.{name}", x, stride)
        return x

    def _proposals(self, maps: Tensor, size: tuple[int, int]) -> Tensor:
        """Boxes (R, 4), by decreasing objectness."""
        settings = self.settings
        hidden = self.convolution(f"{HEAD}.conv", maps).relu()
        scores = self.convolution(f"{HEAD}.objectness_logits", hidden)[0].permute(1, 2, 0).flatten()  # (h x w x A,)
        deltas = self.convolution(f"{HEAD}.anchor_deltas", hidden)[0]
        deltas = deltas.unflatten(0, (-1, 4)).permute(2, 3, 0, 1).reshape(-1, 4)
        scores, order = scores.sort(descending=True)
        order = order[: settings.proposals_before]
        boxes = apply_deltas(deltas[order], self._anchors(maps)[order], (1.0, 1.0, 1.0, 1.0))
        boxes, scores = clip_boxes_to_image(boxes, size), scores[: settings.proposals_before]
        real = (boxes[:, 2:] > boxes[:, :2]).all(1)
        boxes, scores = boxes[real], scores[real]
        return boxes[nms(boxes, scores, settings.proposal_overlap)[: settings.proposals]]

    def _anchors(self, maps: Tensor) -> Tensor:
        """(h x w x A, 4) the anchors at every place of the maps."""
        anchors = self.tensors[ANCHORS]
        ys, xs = (torch.arange(count, device=maps.device) * STRIDE for count in maps.shape[2:])
        y, x = torch.meshgrid(ys, xs, indexing="ij")
        return (torch.stack([x, y, x, y], -1).unsqueeze(2) + anchors).reshape(-1, 4)

    def _features(self, maps: Tensor, boxes: Tensor) -> Tensor:
        """(R, D) the last stage over each box, averaged."""
        pooled = roi_pool(maps, [boxes], self.settings.pooled, 1 / STRIDE)
        return self.stage("roi_heads.res5", pooled, dilation=2).mean((2, 3))

    def _attributes(self, features: Tensor, logits: Tensor) -> Tensor:
        """(R, A) probabilities of attributes, given the most probable class, the background included."""
        embedded = self.tensors[f"{PREDICTOR}.cls_embedding.weight"][logits.argmax(-1)]
        hidden = self.linear("fc_attr", torch.cat([features, embedded], -1)).relu()
        return self.linear("attr_score", hidden)[:, :-1].softmax(-1)


def apply_deltas(deltas: Tensor, boxes: Tensor, weights: tuple[float, ...]) -> Tensor:
    """Boxes (N, 4) moved and scaled by deltas (N, 4): shifts of the centre, logarithms of the scale."""
    moves, scales = (deltas / deltas.new_tensor(weights)).split(2, -1)
    sizes = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + sizes / 2 + moves * sizes
    halves = sizes * scales.clamp(max=LARGEST_SCALE).exp() / 2
    return torch.cat([centres - halves, centres + halves], -1)
