"""The network of Visual Genome's Faster R-CNN: ResNet-C4, region proposals, and a dilated last stage over boxes.

Parameters have the names of the published files; sizes follow from the weights.

Facts are from Anderson et al., 2018 (section 3.1) and the published PyTorch code (LXMERT's examples, Apache 2.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torchvision.ops import clip_boxes_to_image, nms, roi_pool

STRIDE = 16  # of the maps of the stage res4, in pixels
HEAD = ("conv", "objectness_logits", "anchor_deltas")
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
    attributes: Tensor  # (R, A) probabilities; A = 0 for a network without attributes


class Convolution(nn.Conv2d):
    """A convolution without bias, and a batch norm."""

    def __init__(self, weight: torch.Size, stride: int = 1, dilation: int = 1) -> None:
        out, into, size, _ = weight
        super().__init__(into, out, size, stride, dilation * (size // 2), dilation, bias=False)
        self.norm = nn.BatchNorm2d(out)

    def forward(self, x: Tensor) -> Tensor:
        normalised: Tensor = self.norm(super().forward(x))
        return normalised


class Bottleneck(nn.Module):
    """A block of ResNet: 1 x 1 with the stride, 3 x 3, 1 x 1."""

    def __init__(self, shapes: Mapping[str, torch.Size], stride: int, dilation: int = 1) -> None:
        super().__init__()
        self.conv1 = Convolution(shapes["conv1.weight"], stride)
        self.conv2 = Convolution(shapes["conv2.weight"], 1, dilation)
        self.conv3 = Convolution(shapes["conv3.weight"])
        self.shortcut = Convolution(shapes["shortcut.weight"], stride) if "shortcut.weight" in shapes else None

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv3(self.conv2(self.conv1(x).relu()).relu())
        return functional.relu(inner + (x if self.shortcut is None else self.shortcut(x)))


class FasterRcnn(nn.Module):
    """See the module. `shapes`: name of a parameter -> its shape. Raises KeyError for missing names."""

    def __init__(self, shapes: Mapping[str, torch.Size], settings: Settings) -> None:
        super().__init__()
        self.settings = settings
        stem: dict[str, nn.Module] = {"conv1": Convolution(shapes["backbone.stem.conv1.weight"], 2)}
        self.backbone: Any = nn.ModuleDict({"stem": nn.ModuleDict(stem)})
        for stage, stride in (("res2", 1), ("res3", 2), ("res4", 2)):
            self.backbone[stage] = _build_stage(shapes, f"backbone.{stage}", stride)
        layers = {name: _convolution(shapes[f"proposal_generator.rpn_head.{name}.weight"]) for name in HEAD}
        self.proposal_generator: Any = nn.ModuleDict(
            {"anchor_generator": nn.Module(), "rpn_head": nn.ModuleDict(layers)}
        )
        anchors = torch.zeros(shapes["proposal_generator.anchor_generator.cell_anchors.0"])
        self.proposal_generator["anchor_generator"].cell_anchors = nn.ParameterList([nn.Parameter(anchors)])
        last = _build_stage(shapes, "roi_heads.res5", 1, dilation=2)
        inside = "roi_heads.box_predictor."
        predictor: Any = nn.ModuleDict()
        for name in ("cls_score", "bbox_pred", "cls_embedding", "fc_attr", "attr_score"):
            if (shape := shapes.get(f"{inside}{name}.weight")) is not None:
                predictor[name] = nn.Embedding(*shape) if name == "cls_embedding" else nn.Linear(shape[1], shape[0])
        self.roi_heads: Any = nn.ModuleDict({"res5": last, "box_predictor": predictor})

    def forward(self, pixels: Tensor, limit: int) -> Detections:
        """The regions of one picture, at most `limit`: pixels (3, h, w), blue first, resized and normalised."""
        height, width = pixels.shape[1:]
        maps = self._maps(pixels.unsqueeze(0))
        proposals = self._proposals(maps, (height, width))
        features = self._features(maps, proposals)
        predictor = self.roi_heads["box_predictor"]
        logits = predictor["cls_score"](features)
        probabilities = logits.softmax(-1)[:, :-1]  # the last is the background
        scores, classes = probabilities.max(1)
        deltas = predictor["bbox_pred"](features).unflatten(1, (-1, 4))  # (R, C or 1, 4)
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
        backbone = self.backbone
        x = backbone["stem"]["conv1"](pixels).relu()
        x = functional.max_pool2d(x, 3, 2, ceil_mode=True)
        for stage in ("res2", "res3", "res4"):
            x = backbone[stage](x)
        return x

    def _proposals(self, maps: Tensor, size: tuple[int, int]) -> Tensor:
        """Boxes (R, 4), by decreasing objectness."""
        settings, head = self.settings, self.proposal_generator["rpn_head"]
        hidden = head["conv"](maps).relu()
        scores = head["objectness_logits"](hidden)[0].permute(1, 2, 0).flatten()  # (h x w x A,)
        deltas = head["anchor_deltas"](hidden)[0].unflatten(0, (-1, 4)).permute(2, 3, 0, 1).reshape(-1, 4)
        scores, order = scores.sort(descending=True)
        order = order[: settings.proposals_before]
        boxes = apply_deltas(deltas[order], self._anchors(maps)[order], (1.0, 1.0, 1.0, 1.0))
        boxes, scores = clip_boxes_to_image(boxes, size), scores[: settings.proposals_before]
        real = (boxes[:, 2:] > boxes[:, :2]).all(1)
        boxes, scores = boxes[real], scores[real]
        return boxes[nms(boxes, scores, settings.proposal_overlap)[: settings.proposals]]

    def _anchors(self, maps: Tensor) -> Tensor:
        """(h x w x A, 4) the anchors at every place of the maps."""
        anchors: Tensor = self.proposal_generator["anchor_generator"].cell_anchors[0]
        ys, xs = (torch.arange(count, device=maps.device) * STRIDE for count in maps.shape[2:])
        y, x = torch.meshgrid(ys, xs, indexing="ij")
        return (torch.stack([x, y, x, y], -1).unsqueeze(2) + anchors).reshape(-1, 4)

    def _features(self, maps: Tensor, boxes: Tensor) -> Tensor:
        """(R, D) the last stage over each box, averaged."""
        size = self.settings.pooled
        pooled = roi_pool(maps, [boxes], size, 1 / STRIDE)
        features: Tensor = self.roi_heads["res5"](pooled).mean((2, 3))
        return features

    def _attributes(self, features: Tensor, logits: Tensor) -> Tensor:
        """(R, A) probabilities of attributes, given the most probable class, the background included."""
        predictor = self.roi_heads["box_predictor"]
        if "attr_score" not in predictor:
            return features[:, :0]
        embedded = predictor["cls_embedding"](logits.argmax(-1))
        hidden = predictor["fc_attr"](torch.cat([features, embedded], -1)).relu()
        probabilities: Tensor = predictor["attr_score"](hidden)[:, :-1].softmax(-1)
        return probabilities


def apply_deltas(deltas: Tensor, boxes: Tensor, weights: tuple[float, ...]) -> Tensor:
    """Boxes (N, 4) moved and scaled by deltas (N, 4): shifts of the centre, logarithms of the scale."""
    moves, scales = (deltas / deltas.new_tensor(weights)).split(2, -1)
    sizes = boxes[:, 2:] - boxes[:, :2]
    centres = boxes[:, :2] + sizes / 2 + moves * sizes
    halves = sizes * scales.clamp(max=LARGEST_SCALE).exp() / 2
    return torch.cat([centres - halves, centres + halves], -1)


def _convolution(weight: torch.Size) -> nn.Conv2d:
    out, into, size, _ = weight
    return nn.Conv2d(into, out, size, padding=size // 2)


def _build_stage(shapes: Mapping[str, torch.Size], name: str, stride: int, dilation: int = 1) -> nn.Sequential:
    """The blocks of a stage; the first has the stride."""
    blocks: list[nn.Module] = []
    while f"{name}.{len(blocks)}.conv1.weight" in shapes:
        start = f"{name}.{len(blocks)}."
        inner = {key.removeprefix(start): shape for key, shape in shapes.items() if key.startswith(start)}
        blocks.append(Bottleneck(inner, 1 if blocks else stride, dilation))
    return nn.Sequential(*blocks)
