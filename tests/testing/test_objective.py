"""The suite of objectives: losses that compare the rows of a batch, and collective operations in a loss."""

from typing import Literal

import pytest
import torch
import torch.nn.functional as F
from kit.broken import Judge, Labels, objective
from kit.views import Views, ViewsObjective
from torch import distributed

from mmgen.examples import Example
from mmgen.tensors import Hiding, Loss
from mmgen.testing import ObjectiveSuite
from mmgen.testing.toy import THINGS


class TestViews(ObjectiveSuite):
    def config(self):
        return Views()

    def examples(self):
        return [Example(thing, {"caption": thing}, (thing,)) for thing in THINGS]


class GatheringObjective(ViewsObjective):
    def forward(self, model, batch, targets):
        loss = super().forward(model, batch, targets)
        if distributed.is_initialized() and distributed.get_world_size() > 1:
            distributed.all_reduce(loss.sums["loss"].detach())
        return loss


class SummingObjective(ViewsObjective):
    def forward(self, model, batch, targets):
        scores = self.left(model.encode(batch).first)
        return Loss({"loss": F.cross_entropy(scores, torch.zeros(len(scores), dtype=torch.int64), reduction="sum")})


def suite(head, compares=True):
    class Wrong(Views):
        type: Literal["wrong"] = "wrong"
        over_batch = compares

        def build(self, backbone, vocabularies):
            return head(backbone.hidden_size)

    built = type("Suite", (ObjectiveSuite,), {"config": lambda self: Wrong()})
    return built()


class SecretLabels(Labels):
    def hides(self, readers):
        return {"caption": Hiding()}


class HidesSecretly(Judge):
    reads = SecretLabels


def test_a_config_and_a_reader_that_hide_different_inputs():
    with pytest.raises(AssertionError, match=r"hidden\(\) returns \[\], but the reader hides \['caption'\]"):
        objective(HidesSecretly)().test_config_and_reader_agree()


def test_a_collective_in_a_loss():
    with pytest.raises(AssertionError) as error:
        suite(GatheringObjective).test_calls_no_collective()
    assert "forward: allreduce of torch.distributed would wait for ever" in str(error.value)
    assert not distributed.is_initialized()
    suite(GatheringObjective).test_over_batch()


def test_a_loss_over_the_batch_is_declared():
    """Also where it is not one: an update could be split."""
    with pytest.raises(AssertionError, match=r"of its examples' losses, unless over_batch is set \(own.loss\)"):
        suite(ViewsObjective, compares=False).test_counts_and_sums()
    with pytest.raises(AssertionError, match=r"sum of its examples' losses; leave out over_batch = True$"):
        suite(SummingObjective).test_over_batch()
    suite(SummingObjective, compares=False).test_counts_and_sums()
