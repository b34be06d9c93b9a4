"""A contrastive objective in a toy model: two views of [CLS] of one row must fit, and not those of other rows."""

from typing import Literal

import torch
import torch.nn.functional as F
from torch import nn

import mmgen
from kit import toys
from mmgen.objectives import BatchObjective, TargetReader
from mmgen.recipe.tables import Step, Training
from mmgen.tensors import Targets


class Views(mmgen.ObjectiveConfig):
    """InfoNCE (van den Oord et al., 2018) between two linear layers of [CLS], with a learnt temperature."""

    type: Literal["views"] = "views"
    over_batch = True

    def build(self, backbone, vocabularies):
        return ViewsObjective(backbone.hidden_size)


class ViewsReader(TargetReader):
    def collate(self, rows):
        return Targets({"loss": len(rows.examples)})


class ViewsObjective(BatchObjective):
    def __init__(self, width):
        super().__init__()
        self.reader = ViewsReader()
        self.left, self.right = nn.Linear(width, 8), nn.Linear(width, 8)
        self.scale = nn.Parameter(torch.tensor([2.0]))

    def features(self, model, batch, targets):
        first = model.encode(batch).first
        return {"left": self.left(first), "right": self.right(first)}

    def compare(self, features):
        scores = F.normalize(features["left"], dim=1) @ F.normalize(features["right"], dim=1).T * self.scale.exp()
        return {"loss": F.cross_entropy(scores, torch.arange(len(scores), device=scores.device), reduction="sum")}


def model(dropout=0.0, objective=None):
    built = toys.model(dropout=dropout)
    torch.manual_seed(1)
    built.objectives["views"] = (objective or ViewsObjective)(32)
    return built.eval()


def step(objectives=("views",), **training):
    chosen = {"batch_size": 16, "micro_batch_size": 16, "epochs": 2, "learning_rate": 1e-3, "precision": "fp32"}
    return Step(
        inputs=("caption",),
        train=("backbone",),
        objectives=objectives,
        training=Training(**{**chosen, "length_bucket": 1, **training}),
    )
