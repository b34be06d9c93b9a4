"""A loss that compares the rows of a batch, in a toy model: two views of one row must fit, not those of other rows."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

import mmgen
from kit import toys
from mmgen.objectives import Objective, TargetReader
from mmgen.tensors import Loss, Targets


class Views(mmgen.ObjectiveConfig):
    """InfoNCE (van den Oord et al., 2018) between two linear layers of [CLS]."""

    type: Literal["views"] = "views"
    over_batch = True

    def build(self, backbone, vocabularies):
        return ViewsObjective(backbone.hidden_size)


class ViewsReader(TargetReader):
    def collate(self, rows):
        return Targets({"loss": len(rows.examples)})


class ViewsObjective(Objective):
    def __init__(self, width):
        super().__init__()
        self.reader = ViewsReader()
        self.left, self.right = nn.Linear(width, 8), nn.Linear(width, 8)

    def forward(self, model, batch, targets):
        first = model.encode(batch).first
        scores = 7 * F.normalize(self.left(first), dim=1) @ F.normalize(self.right(first), dim=1).T
        return Loss({"loss": F.cross_entropy(scores, torch.arange(len(scores)), reduction="sum")})


def model(dropout=0.0):
    built = toys.model(dropout=dropout)
    torch.manual_seed(1)
    built.objectives["views"], built.over_batch = ViewsObjective(32), frozenset({"views"})
    return built.eval()


@mmgen.hookimpl
def register_objectives():
    return [Views]
