"""Truths of statements, and captions that belong to a picture or not: rows and heads."""

import random
from dataclasses import replace
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from kit import toys
from kit.objectives import (
    TaskObjectiveSuite,
    batch_of,
    examples,
    loss_of,
    model,
    model_of,
    predictions,
    record,
    regions,
)
from mmgen_inputs import Text
from mmgen_objectives import MaskedWords, SentenceImage
from mmgen_objectives.statements import TwoCaptions
from mmgen_objectives.tasks import TextAssignment, TrueOrFalse

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.examples import All, Example
from mmgen.testing import Words

EXAMPLES, ASKED = toys.examples(12), {"question": Text(), "image": regions()}


class TestSentenceImage(mmgen.testing.ObjectiveSuite):
    def config(self):
        return SentenceImage()

    def inputs(self):
        return {"caption": Words(), "second": Words(fields=("second",))}


def test_half_of_the_second_captions_are_of_another_picture_and_the_others_are_another_of_the_same():
    examples = [Example(f"p{i}", {"image": f"p{i}", "caption": (f"a {i}", f"b {i}")}) for i in range(20)]
    reader, fitting = TwoCaptions(SentenceImage()), 0
    for number in range(400):
        example, draw = examples[number % 20], random.Random(number)
        rest = [candidate for candidate in examples if candidate is not example]
        (row,) = reader.rows(example, draw, partial(draw.choice, rest))
        first, second, fits = row.inputs["caption"], row.inputs["second"], row.labels["drawn"]
        assert first.split()[1] == example.id[1:] and first != second
        assert (second.split()[1] == example.id[1:]) == fits
        fitting += fits
    assert fitting / 400 == pytest.approx(0.5, abs=0.08)


def test_a_pair_is_drawn_for_every_pass_and_the_same_in_any_batch():
    captions = {"caption": Text(), "second": Text(fields=("second",))}
    composed = model_of(captions, {"fits": SentenceImage(), "words": MaskedWords()}, words=" ".join(toys.WORDS))
    collate = Collator(composed, composed.inputs, ["fits", "words"], RngKey(0, "s"), EXAMPLES)

    def second_captions(examples, epoch):
        batch = collate(examples, [epoch] * len(examples))
        fits = batch.targets["fits"].labels["classes"].tolist()
        ids = [row[row > 0].tolist() for row in batch.inputs["second"]["ids"]]
        return dict(zip(batch.ids, zip(fits, ids, strict=True), strict=True))

    together = second_captions(EXAMPLES, 0)
    assert together == {k: v for example in EXAMPLES for k, v in second_captions([example], 0).items()}
    assert together != second_captions(EXAMPLES, 1) and len({fits for fits, _ in together.values()}) == 2
    loss = composed(collate(EXAMPLES, [0] * 12))
    assert loss.counts["fits.loss"] == 12 and set(loss.sums) == {"fits.loss", "words.loss"}
    # validation draws from all captions as training does: a second caption that fits is never the first again
    rows = [row.example for example in EXAMPLES for row in collate.read(example)]
    fitting = [row.inputs for row in rows if row.labels["drawn"]]
    assert len(fitting) > 2 and all(inputs["caption"] != inputs["second"] for inputs in fitting)


@pytest.mark.slow
class TestTrueOrFalse(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0)

    def inputs(self):
        return ASKED


def pairs_of_pictures(count=6):
    """Examples with two pictures each."""
    pairs = []
    for n, example in enumerate(examples()[:count]):
        pictures = All((example.inputs["image"], record(f"other{n}", 2, 9 + n)))
        pairs.append(replace(example, inputs=example.inputs | {"image": pictures}))
    return pairs


@pytest.mark.slow
class TestTwoRows(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0, arrangement="rows")

    def inputs(self):
        return ASKED

    def examples(self):
        return pairs_of_pictures()


@pytest.mark.slow
def test_each_picture_has_a_row_with_the_statement():
    """The loss and the predictions are those of a head over the pooled states of two rows, each encoded by itself."""
    network = model(TrueOrFalse(arrangement="rows"), ASKED)
    single = model(TrueOrFalse(), ASKED)
    single.load_state_dict({k: v for k, v in network.state_dict().items() if ".own." not in k}, strict=False)
    pairs, expected = pairs_of_pictures(3), 0.0
    for pair, prediction in zip(pairs, predictions(network, pairs), strict=True):
        rows = [replace(pair, inputs=pair.inputs | {"image": picture}) for picture in pair.inputs["image"].values]
        pooled = [single.backbone.pooled(single.encode(batch_of(single, [row])).states) for row in rows]
        logits = network.objective("own").head(torch.cat(pooled, -1))
        expected = expected + F.cross_entropy(logits, torch.tensor([int(pair.labels["truth"])]))
        assert prediction.value["probabilities"]["True"] == pytest.approx(logits.softmax(-1)[0, 1].item(), abs=1e-4)
    loss = loss_of(network, pairs)
    assert torch.allclose(loss.sums["own.loss"], expected, atol=1e-3) and loss.counts == {"own.loss": 3}


INPUTS = {"caption": Text(), "image": regions()}
CAPTIONED = [
    Example(f"e{n}", {"image": record(f"p{n}", 3 + n % 3, n), "caption": (f"a {word} cat",)})
    for n, word in enumerate(("red", "blue", "two", "ball", "dogs", "grass"))
]


@pytest.mark.slow
class TestTextAssignment(TaskObjectiveSuite):
    arrangement = "row"

    def config(self):
        return TextAssignment(arrangement=self.arrangement)

    def inputs(self):
        return INPUTS

    def examples(self):
        return CAPTIONED


@pytest.mark.slow
class TestTextAssignmentInTwoRows(TestTextAssignment):
    arrangement = "rows"


@pytest.mark.slow
def test_the_caption_belongs_to_the_labelled_picture():
    """The first, the second, or neither, each about a third of the time."""
    row_reader, rows_reader = (
        model(TextAssignment(arrangement=arrangement), INPUTS).objective("own").reader
        for arrangement in ("row", "rows")
    )
    example = Example("own", {"image": "p0", "caption": ("a cat", "two dogs")})
    others = Example("other", {"image": "p1"}), Example("other", {"image": All(("p2", "p2"))})
    seen = []
    for seed in range(90):
        (row,) = row_reader.rows(example, random.Random(seed), iter(others).__next__)
        pictures, belongs = row.inputs["image"].values, row.labels["drawn"]
        assert pictures == [("p0", "p2"), ("p1", "p0"), ("p1", "p2")][belongs]
        assert row.inputs["caption"] in example.inputs["caption"]
        seen.append(belongs)
        first, second = rows_reader.rows(example, random.Random(seed), iter(others).__next__)
        assert (first.inputs["image"], second.inputs["image"]) == pictures
        assert first.inputs["caption"] == second.inputs["caption"] == row.inputs["caption"]
    assert min(seen.count(label) for label in range(3)) > 20
