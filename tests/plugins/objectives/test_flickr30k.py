"""The region of a phrase: objective, scores and card."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.judged import BOXES, FAR, PHRASES, Judges, predictions_of
from kit.objectives import (
    TaskObjectiveSuite,
    batch_of,
    examples,
    iou,
    loss_of,
    model,
    predictions,
    regions,
    two_pictures,
)
from mmgen_inputs import Text
from mmgen_objectives.tasks import PhraseRegions
from mmgen_tasks import BoxesCard, PhraseRecall

from mmgen.cards import Card, Piece
from mmgen.errors import DataError
from mmgen.examples import Example, Prediction
from mmgen.testing import RendererSuite


@pytest.mark.slow
class TestPhraseRegions(TaskObjectiveSuite):
    def config(self):
        return PhraseRegions()

    def inputs(self):
        return {"caption": Text(), "image": regions()}


@pytest.mark.slow
def test_phrases_of_two_pictures_are_refused():
    network = model(PhraseRegions(), {"caption": Text(), "image": regions()})
    with pytest.raises(
        DataError, match="example 'pair' shows several pictures, but a phrase's boxes belong to one picture"
    ):
        batch_of(network, two_pictures())


@pytest.mark.slow
def test_phrases_look_from_their_last_word_piece():
    network = model(PhraseRegions(width=8), {"caption": Text(), "image": regions()})
    all_examples, expected = examples(), 0.0
    objective = network.objective("own")
    for example in all_examples:
        boxes = example.inputs["image"].boxes.tolist()
        (first, end, box), _ = example.labels["phrases"]  # no region is near the second phrase
        encoded = network.encode(batch_of(network, [example]))
        spans = network.embedders["caption"].describe(example)["spans"]
        last = [slot for slot, (start, stop) in enumerate(spans) if start < end and stop > first][-1]
        assert spans[last][1] == end
        query, keys = objective.query(encoded.inputs["caption"][0, last]), objective.key(encoded.inputs["image"][0])
        shares = (keys @ query / 8**0.5).log_softmax(-1)
        right = [place for place, region in enumerate(boxes) if iou(region, box) >= 0.5]
        expected = expected + sum((1 / len(right)) * (np.log(1 / len(right)) - shares[place]) for place in right)
    loss = loss_of(network, all_examples)
    assert loss.counts == {"own.loss": 6}
    assert torch.allclose(loss.sums["own.loss"], expected.float(), atol=1e-4)
    for prediction, example in zip(predictions(network, all_examples), all_examples, strict=True):
        assert np.allclose(sorted(prediction.value), sorted(example.inputs["image"].boxes.tolist()), atol=1e-5)
    assert prediction.value[0] == pytest.approx(boxes[int(shares.argmax())], abs=1e-5)


@pytest.mark.slow
def test_a_phrase_that_is_cut_off_has_no_loss():
    network = model(PhraseRegions(), {"caption": Text(max_tokens=2), "image": regions()})
    box = examples()[0].inputs["image"].boxes[1].tolist()
    example = replace(examples()[0], labels={"phrases": ((0, 5, box), (14, 22, box))})
    targets = batch_of(network, [example]).targets["own"]
    assert targets.counts == {"loss": 1} and targets.labels["last"][0, 1] == -100


class TestPhraseRecall(Judges):
    scored_examples = PHRASES

    def config(self):
        return PhraseRecall(by=("type",))

    def value(self, n, example):
        return [list(FAR)] * n + [list(BOXES[0])]


def test_recall_of_phrases():
    ranked = [[BOXES[0]], [FAR] * 5 + [BOXES[1]], [FAR] * 12 + [BOXES[2]]]
    scores = PhraseRecall(by=("type",)).build().score(predictions_of(ranked, PHRASES), PHRASES)
    third = pytest.approx(100 / 3)
    assert scores.values == {
        "animals": 50,
        "people": 0,
        "R@1": third,
        "R@5": third,
        "R@10": pytest.approx(200 / 3),
        "upper bound": 100,
    }
    assert PhraseRecall().build().score(predictions_of([[FAR], [], [FAR]], PHRASES), PHRASES).values["upper bound"] == 0
    assert PhraseRecall().build().references(PHRASES).values == {"chance_R@1": pytest.approx(200 / 3)}


LEFT, RIGHT = (0.0, 0.0, 0.5, 0.5), (0.5, 0.5, 1.0, 1.0)
CAPTION = Example("p", {"caption": "a red cat"}, (), {}, {"phrases": ((2, 9, LEFT),)})


@pytest.mark.parametrize(
    "boxes, line, right, terminal_line",
    [
        ([RIGHT, LEFT], "right at rank 2 of 2", False, "[0.500, 0.500, 1.000, 1.000]"),
        ([LEFT], "right at rank 1 of 1", True, "[0.000, 0.000, 0.500, 0.500]"),
        ([RIGHT], "none of 1 boxes is right", False, "[0.500, 0.500, 1.000, 1.000]"),
        ([], "no box", False, "no box"),
    ],
)
def test_flickr30k_shows_the_rank_of_the_right_box(boxes, line, right, terminal_line):
    prediction = Prediction("p", [[*box] for box in boxes], 0.5)
    assert BoxesCard().card(CAPTION, prediction) == Card(
        line=line,
        confidence=0.5 if boxes else None,
        right=right,
        box=boxes[0] if boxes else None,
        right_box=LEFT,
        texts={"caption": (Piece("a "), Piece("red cat", marked=True), Piece(""))},
    )
    assert BoxesCard().line(CAPTION, prediction) == terminal_line


def test_flickr30k_without_the_right_box():
    card = BoxesCard().card(Example("p", {"caption": "a cat"}), Prediction("p", [[*LEFT], [*RIGHT]], 0.5))
    assert card == Card(line="2 boxes", confidence=0.5, box=LEFT)


class TestPhraseBoxes(RendererSuite):
    def config(self):
        return BoxesCard()

    def examples(self):
        return [CAPTION]

    def predictions(self, examples):
        return [Prediction("p", [[*RIGHT], [*LEFT]], 0.5)]
