"""Text assignment: the drawn pictures hold the caption's own at the place of the label, or do not hold it."""

import random
import re
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from kit.objectives import TaskObjectiveSuite, batch_of, loss_of, model, record, regions
from mmgen_tasks import TextAssignment
from mmgen_text import Text

from mmgen.errors import MissingInput
from mmgen.tensors import All, Example

pytestmark = pytest.mark.slow
INPUTS = {"caption": Text(), "image": regions()}
CAPTIONED = [
    Example(f"e{n}", {"image": record(f"p{n}", 3 + n % 3, n), "caption": (f"a {word} cat",)})
    for n, word in enumerate(("red", "blue", "two", "ball", "dogs", "grass"))
]


class TestTextAssignment(TaskObjectiveSuite):
    arrangement = "row"

    def config(self):
        return TextAssignment(arrangement=self.arrangement)

    def inputs(self):
        return {"caption": Text(), "image": regions()}

    def examples(self):
        return CAPTIONED


class TestTextAssignmentInTwoRows(TestTextAssignment):
    arrangement = "rows"


@cache
def reader(config):
    return model(config, INPUTS).objective("own").reader


def drawn_rows(config, seed):
    example = Example("own", {"image": "p0", "caption": ("a cat", "two dogs")})
    other_examples = iter([Example("other", {"image": "p1"}), Example("other", {"image": All(("p2", "p2"))})])
    return reader(config).rows(example, random.Random(seed), lambda: next(other_examples))


def test_the_caption_belongs_to_the_labelled_picture():
    """The first, the second, or neither, each about a third of the time."""
    seen = []
    for seed in range(90):
        (row,) = drawn_rows(TextAssignment(), seed)
        pictures, belongs = row.inputs["image"].values, row.labels["belongs"]
        assert pictures == [("p0", "p2"), ("p1", "p0"), ("p1", "p2")][belongs] and row.inputs["caption"] in (
            "a cat",
            "two dogs",
        )
        seen.append(belongs)
        first, second = drawn_rows(TextAssignment(arrangement="rows"), seed)
        assert (first.inputs["image"], second.inputs["image"]) == pictures
        assert first.inputs["caption"] == second.inputs["caption"] == row.inputs["caption"]
    assert min(seen.count(label) for label in range(3)) > 20


def test_the_loss_of_two_rows():
    network = model(TextAssignment(arrangement="rows"), INPUTS)
    batch = batch_of(network, CAPTIONED)
    pooled = network.backbone.pooled(network.encode(batch).states)
    logits = network.objective("own").head(torch.cat([pooled[::2], pooled[1::2]], -1))
    expected = F.cross_entropy(logits, batch.targets["own"].labels["belongs"], reduction="sum")
    loss = loss_of(network, CAPTIONED)
    assert loss.counts == {"own.loss": 6} and torch.allclose(loss.sums["own.loss"], expected, atol=1e-4)


def test_an_example_without_a_caption():
    network = model(TextAssignment(), INPUTS)
    reader = network.objective("own").reader
    message = "example 'e0' has no caption; this objective assigns captions to pictures"
    with pytest.raises(MissingInput, match=f"^{re.escape(message)}$"):
        reader.rows(Example("e0", {"image": "p0"}), random.Random(0), lambda: CAPTIONED[1])
