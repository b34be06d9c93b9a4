"""The network of Visual Genome's Faster R-CNN: ResNet-C4, region proposals, and a dilated last stage over boxes.

Parameters have the names of the published files; sizes follow from the weights.

Facts are from Anderson et al., 2018 (section 3.1) and the published PyTorch code (LXMERT's examples, Apache 2.0)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, NamedTuple

import torch
from pydantic import ConfigDict, Field, ValidationError
from pydantic.dataclasses import dataclass
from torch import Tensor, nn
from torch.nn import functional
from torchvision.ops import clip_boxes_to_image, nms, roi_pool

STRIDE = 16  # of the maps of the stage res4, in pixels
HEAD = ("conv", "objectness_logits", "anchor_deltas")
LARGEST_SCALE = math.log(1000 / 16)  # of a box's width or height, by which a proposal changes

Number = Annotated[float, Field(allow_inf_nan=False)]
Scale = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=1, le=100_000)]
Side = Annotated[int, Field(ge=1, le=4000)]
MEANINGS = {
    "pixel_mean": "three numbers",
    "pixel_std": "three numbers above 0",
    "box_weights": "four numbers above 0",
    "overlaps": "one or more numbers from 0 to 1",
    "proposal_overlap": "a number from 0 to 1",
    "anchor_offset": "a number",
    "pooled": "a whole number from 1 to 64",
    **dict.fromkeys(("min_size", "max_size"), "a whole number from 1 to 4000"),
    **dict.fromkeys(("proposals_before", "proposals", "min_regions"), "a whole number from 1 to 100000"),
    **dict.fromkeys(("caffe_maxpool", "stride_in_1x1", "halved"), "true or false"),
}


@dataclass(frozen=True, config=ConfigDict(strict=True))
class Settings:
    """What does not follow from the weights; defaults are those of the published config.yaml."""

    pixel_mean: tuple[Number, Number, Number] = (102.9801, 115.9465, 122.7717)  # blue, green, red
    pixel_std: tuple[Scale, Scale, Scale] = (1.0, 1.0, 1.0)
    min_size: Side = 800  # shorter side of the picture, in pixels
    max_size: Side = 1333
    caffe_maxpool: bool = True
    stride_in_1x1: bool = True
    anchor_offset: Number = 0.0
    proposals_before: Count = 6000  # before suppression
    proposals: Count = 300
    proposal_overlap: Share = 0.7
    overlaps: Annotated[tuple[Share, ...], Field(min_length=1)] = (0.5, 0.6, 0.7)  # the first that leaves enough counts
    pooled: Annotated[int, Field(ge=1, le=64)] = 14
    box_weights: tuple[Scale, Scale, Scale, Scale] = (10.0, 10.0, 5.0, 5.0)
    halved: bool = False  # whether the last stage halves its maps, in place of dilation
    min_regions: Count = 36


def settings_of(values: Mapping[str, Any]) -> Settings | str:
    """The settings with these values, as JSON has them; the name of a wrong one."""
    settings: dict[str, Any] = {
        name: tuple(value) if isinstance(value, list) else value for name, value in values.items()
    }
    try:
        return Settings(**settings)
    except ValidationError as error:
        return str(error.errors()[0]["loc"][0])


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
    """A block of ResNet: 1 x 1, 3 x 3, 1 x 1."""

    def __init__(self, shapes: Mapping[str, torch.Size], stride: int, in_1x1: bool, dilation: int = 1) -> None:
        super().__init__()
        first, second = (stride, 1) if in_1x1 else (1, stride)
        self.conv1 = Convolution(shapes["conv1.weight"], first)
        self.conv2 = Convolution(shapes["conv2.weight"], second, dilation)
        self.conv3 = Convolution(shapes["conv3.weight"])
        self.shortcut = Convolution(shapes["shortcut.weight"], stride) if "shortcut.weight" in shapes else None

    def forward(self, x: Tensor) -> Tensor:
        inner = self.conv3(self.conv2(self.conv1(x).relu()).relu())
        return functional.relu(inner + (x if self.shortcut is None else self.shortcut(x)))


class FasterRcnn(nn.Module):
    """See the module. `shapes`: name of a parameter -> its shape. Raises KeyError for missing names."""

    def __init__(self, shapes: Mapping[str, torch.Size], settings: Settings) -> None:
        super().__init__()
        self.settings, in_1x1 = settings, settings.stride_in_1x1
        stem: dict[str, nn.Module] = {"conv1": Convolution(shapes["backbone.stem.conv1.weight"], 2)}
        self.backbone: Any = nn.ModuleDict({"stem": nn.ModuleDict(stem)})
        for stage, stride in (("res2", 1), ("res3", 2), ("res4", 2)):
            self.backbone[stage] = _build_stage(shapes, f"backbone.{stage}", stride, in_1x1)
        layers = {name: _convolution(shapes[f"proposal_generator.rpn_head.{name}.weight"]) for name in HEAD}
        self.proposal_generator: Any = nn.ModuleDict(
            {"anchor_generator": nn.Module(), "rpn_head": nn.ModuleDict(layers)}
        )
        anchors = torch.zeros(shapes["proposal_generator.anchor_generator.cell_anchors.0"])
        self.proposal_generator["anchor_generator"].cell_anchors = nn.ParameterList([nn.Parameter(anchors)])
        halved = settings.halved
        last = _build_stage(shapes, "roi_heads.res5", 2 if halved else 1, in_1x1, 1 if halved else 2)
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
        moved = apply_deltas(deltas[torch.arange(len(deltas)), chosen], proposals, self.settings.box_weights)
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
        caffe = self.settings.caffe_maxpool
        x = functional.max_pool2d(x, 3, 2, padding=0 if caffe else 1, ceil_mode=caffe)
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
        ys, xs = (
            (torch.arange(count, device=maps.device) + self.settings.anchor_offset) * STRIDE for count in maps.shape[2:]
        )
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


def _build_stage(
    shapes: Mapping[str, torch.Size], name: str, stride: int, in_1x1: bool, dilation: int = 1
) -> nn.Sequential:
    """The blocks of a stage; the first has the stride."""
    blocks: list[nn.Module] = []
    while f"{name}.{len(blocks)}.conv1.weight" in shapes:
        start = f"{name}.{len(blocks)}."
        inner = {key.removeprefix(start): shape for key, shape in shapes.items() if key.startswith(start)}
        blocks.append(Bottleneck(inner, 1 if blocks else stride, in_1x1, dilation))
    return nn.Sequential(*blocks)
