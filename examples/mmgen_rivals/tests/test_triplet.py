"""The triplet loss and its exemplars, by numbers."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from mmgen.data.seeds import resolve
from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.parts import Record
from mmgen.testing import ObjectiveSuite, Words

from mmgen_rivals import Triplet
from written_out import INPUTS, D, collated, examples, first_inputs, model


class TestTriplet(ObjectiveSuite):
    def config(self):
        return Triplet(contrasting=3)

    def inputs(self):
        return {"image": INPUTS["image"], "caption": Words()}

    def examples(self):
        return examples(6)


def line(count):
    """Pictures on a line: picture n is at n squared."""
    features = [np.full((1, D), n * n, np.float32) for n in range(count)]
    return [
        Example(f"e{n}", {"image": Record(f"p{n}", at), "caption": f"dog {n}"}, ("tree",))
        for n, at in enumerate(features)
    ]


def targets(many, candidates, **keys):
    rival = model("mdn_joint", objectives={"near": Triplet(**keys)})
    return rival, collated(rival, many, ("near",), candidates)


def chosen(many, candidates, **keys):
    """For each example, the number of its supporting and of its contrasting exemplar."""
    labels = targets(many, candidates, **keys)[1].targets["near"].labels
    features = [labels[f"{role}/image/features"][:, 0, 0].tolist() for role in ("supporting", "contrasting")]
    return [tuple(round(place**0.5) for place in places) for places in zip(*features, strict=True)]


def test_exemplars_are_training_pictures_by_rank_without_the_picture_itself():
    train = line(6)
    assert chosen(train, train, contrasting=5) == [(1, 5), (0, 5), (1, 5), (2, 5), (3, 0), (4, 0)]
    assert chosen(train[:1], train, supporting=2, contrasting=3) == [(2, 3)]
    assert chosen(train[:1], train) == [(1, 5)]  # the 200th of five others is the last
    unseen = Example("v", {"image": Record("v", np.full((1, D), 5.0, np.float32)), "caption": "cat"}, ("ball",))
    assert chosen([unseen], train, contrasting=4) == [(2, 0)]


def test_two_examples_of_one_picture_are_not_each_other_s_exemplars():
    train = line(4)
    twin = replace(train[0], id="twin", inputs={**train[0].inputs, "caption": "house"})
    assert chosen([twin], [*train, twin], contrasting=3) == [(1, 3)]


def test_too_few_pictures_are_an_error_in_words():
    with pytest.raises(DataError) as error:
        targets(line(2), line(2))
    assert str(error.value) == "example 'e0': a triplet needs at least two other training pictures"


def test_it_needs_stored_features():
    assert Triplet().errors({"image": Words()}) == (
        "needs the input 'image' with stored features; name such an input in its key 'picture'"
    )


@torch.no_grad()
def test_the_loss_is_the_margin_between_squared_distances():
    many = examples(5)
    margin = 0.2
    rival, batch = targets(many, many, contrasting=3)
    loss = rival(batch)
    total, active = 0.0, 0
    vectors = [first_inputs(rival, resolve(example))[0] for example in many]
    pictures = [example.inputs["image"].features.mean(0) for example in many]
    for row, vector in enumerate(vectors):
        ranked = sorted(
            (place for place in range(5) if place != row),
            key=lambda place: float(((pictures[place] - pictures[row]) ** 2).sum()),
        )
        near, far = (float(((vector - vectors[ranked[rank]]) ** 2).sum()) for rank in (0, 2))
        total += max(0.0, near - far + margin)
        active += near - far + margin > 0
    assert 0 < active < 5  # both sides of the maximum
    assert float(loss.sums["near.loss"]) == pytest.approx(total, rel=1e-4) and loss.counts["near.loss"] == 5
