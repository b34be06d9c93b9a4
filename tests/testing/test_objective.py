"""The suite of objectives: losses that compare the rows of a whole batch, and collective operations in a loss."""

from typing import Literal

import pytest
import torch
from kit.broken import Judge, Labels, assert_caught, broken_parts, objective
from kit.contrast import Views, ViewsObjective
from torch import distributed

from mmgen.errors import PluginError
from mmgen.tensors import Example, Hiding
from mmgen.testing import ObjectiveSuite
from mmgen.testing.toy import THINGS


@pytest.mark.parametrize("suite, test, words", broken_parts("objective"))
def test_a_broken_part_is_caught_in_words(suite, test, words):
    assert_caught(suite, test, words)


class TestViews(ObjectiveSuite):
    def config(self):
        return Views()

    def examples(self):
        return [Example(thing, {"caption": thing}, (thing,)) for thing in THINGS]


class MixedObjective(ViewsObjective):
    def features(self, model, batch, targets):
        values = super().features(model, batch, targets)
        return {**values, "left": values["left"] - values["left"].mean(0)}


class GatheringObjective(ViewsObjective):
    def features(self, model, batch, targets):
        values = super().features(model, batch, targets)
        if distributed.is_initialized() and distributed.get_world_size() > 1:
            pieces = [torch.empty_like(values["left"]) for _ in range(distributed.get_world_size())]
            distributed.all_gather(pieces, values["left"].detach())
        return values


def suite(head):
    class Wrong(Views):
        type: Literal["wrong"] = "wrong"

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
    with pytest.raises(PluginError, match=r"the config's hidden\(\) returns \[\], but the reader hides \['caption'\]"):
        objective(HidesSecretly)().test_config_and_reader_agree()


def test_features_that_depend_on_other_rows():
    with pytest.raises(
        AssertionError, match="^the feature 'left' of a row must not depend on other rows, and have one"
    ):
        suite(MixedObjective).test_features()


def test_a_collective_in_a_loss():
    with pytest.raises(AssertionError) as error:
        suite(GatheringObjective).test_calls_no_collective()
    assert "features raises CollectiveError: allgather of torch.distributed would wait for ever" in str(error.value)
    assert not distributed.is_initialized()
    for name in ("test_features", "test_counts_and_sums"):
        getattr(suite(GatheringObjective), name)()


class PlainViews(Views):
    over_batch = False


def test_over_batch_is_declared():
    wrong = type("Suite", (ObjectiveSuite,), {"config": lambda self: PlainViews()})()
    with pytest.raises(PluginError) as error:
        wrong.model()
    said = "over_batch is False, but ViewsObjective is a BatchObjective; change one of the two"
    assert str(error.value).endswith(said)
