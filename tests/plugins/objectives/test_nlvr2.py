"""The truth of statements: its heads, rows, scores and card."""

import random
import re
from dataclasses import replace
from functools import cache

import pytest
import torch
import torch.nn.functional as F
from kit.judged import STATEMENTS, Judges, predictions_of
from kit.objectives import TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions, record, regions
from mmgen_inputs import Text
from mmgen_objectives.tasks import TextAssignment, TrueOrFalse
from mmgen_tasks import LabelCard, PairAccuracy

from mmgen.cards import Bar, Card
from mmgen.errors import DataError
from mmgen.examples import All, Example, Prediction
from mmgen.testing import RendererSuite


@pytest.mark.slow
class TestTrueOrFalse(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "image": regions()}


def pairs_of_pictures(count=6):
    """Examples with two pictures each."""
    return [
        replace(
            example, inputs=example.inputs | {"image": All((example.inputs["image"], record(f"other{n}", 2, 9 + n)))}
        )
        for n, example in enumerate(examples()[:count])
    ]


@pytest.mark.slow
class TestTwoRows(TaskObjectiveSuite):
    def config(self):
        return TrueOrFalse(dropout=0.0, arrangement="rows")

    def inputs(self):
        return {"question": Text(), "image": regions()}

    def examples(self):
        return pairs_of_pictures()


@pytest.mark.slow
def test_each_picture_has_a_row_with_the_statement():
    """The loss and the predictions are those of a head over the pooled states of two rows, each encoded by itself."""
    network = model(TrueOrFalse(arrangement="rows"), {"question": Text(), "image": regions()})
    single = model(TrueOrFalse(), {"question": Text(), "image": regions()})
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


@pytest.mark.slow
def test_two_rows_need_two_pictures():
    network = model(TrueOrFalse(arrangement="rows"), {"question": Text(), "image": regions()})
    message = (
        "example 'e0': arrangement = \"rows\" needs two pictures in 'image'; give two, or set arrangement = \"row\""
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        batch_of(network, examples()[:1])


@pytest.mark.slow
def test_truth_of_two_pictures():
    network = model(TrueOrFalse(), {"question": Text(), "image": regions()})
    pairs = pairs_of_pictures(3)
    loss, expected = loss_of(network, pairs), 0.0
    for pair in pairs:
        states = network.encode(batch_of(network, [pair])).states
        logits = network.objective("own").head(network.backbone.pooled(states))
        expected = expected + F.cross_entropy(logits, torch.tensor([int(pair.labels["truth"])]))
    assert torch.allclose(loss.sums["own.loss"], expected, atol=1e-4) and loss.counts == {"own.loss": 3}
    for prediction in predictions(network, pairs):
        assert prediction.value["label"] == max(
            prediction.value["probabilities"], key=prediction.value["probabilities"].get
        )
        assert sum(prediction.value["probabilities"].values()) == pytest.approx(1)


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
        return {"caption": Text(), "image": regions()}

    def examples(self):
        return CAPTIONED


@pytest.mark.slow
class TestTextAssignmentInTwoRows(TestTextAssignment):
    arrangement = "rows"


@cache
def reader(config):
    return model(config, INPUTS).objective("own").reader


def drawn_rows(config, seed):
    example = Example("own", {"image": "p0", "caption": ("a cat", "two dogs")})
    other_examples = iter([Example("other", {"image": "p1"}), Example("other", {"image": All(("p2", "p2"))})])
    return reader(config).rows(example, random.Random(seed), lambda: next(other_examples))


@pytest.mark.slow
def test_the_caption_belongs_to_the_labelled_picture():
    """The first, the second, or neither, each about a third of the time."""
    seen = []
    for seed in range(90):
        (row,) = drawn_rows(TextAssignment(), seed)
        pictures, belongs = row.inputs["image"].values, row.labels["drawn"]
        assert pictures == [("p0", "p2"), ("p1", "p0"), ("p1", "p2")][belongs] and row.inputs["caption"] in (
            "a cat",
            "two dogs",
        )
        seen.append(belongs)
        first, second = drawn_rows(TextAssignment(arrangement="rows"), seed)
        assert (first.inputs["image"], second.inputs["image"]) == pictures
        assert first.inputs["caption"] == second.inputs["caption"] == row.inputs["caption"]
    assert min(seen.count(label) for label in range(3)) > 20


@pytest.mark.slow
def test_the_loss_of_two_rows():
    network = model(TextAssignment(arrangement="rows"), INPUTS)
    batch = batch_of(network, CAPTIONED)
    pooled = network.backbone.pooled(network.encode(batch).states)
    logits = network.objective("own").head(torch.cat([pooled[::2], pooled[1::2]], -1))
    expected = F.cross_entropy(logits, batch.targets["own"].labels["classes"], reduction="sum")
    loss = loss_of(network, CAPTIONED)
    assert loss.counts == {"own.loss": 6} and torch.allclose(loss.sums["own.loss"], expected, atol=1e-4)


@pytest.mark.slow
def test_an_example_without_a_caption():
    network = model(TextAssignment(), INPUTS)
    reader = network.objective("own").reader
    message = "example 'e0' has no caption, which this objective compares"
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        reader.rows(Example("e0", {"image": "p0"}), random.Random(0), lambda: CAPTIONED[1])


class TestPairAccuracy(Judges):
    scored_examples = STATEMENTS

    def config(self):
        return PairAccuracy()

    def value(self, n, example):
        return {"label": "True", "probabilities": {"True": 0.7, "False": 0.3}}


def test_pairs_and_their_consistency():
    """As the official script counts: a sentence is consistent where none of its pairs is wrong."""
    predicted = ["True", "False", "true", "True", "False", "True", "False"]
    scores = (
        PairAccuracy().build().score(predictions_of([{"label": label} for label in predicted], STATEMENTS), STATEMENTS)
    )
    right, consistent = 0, {}
    for label, example in zip(predicted, STATEMENTS, strict=True):
        _, set_, _, sentence = example.id.split("-")
        hit = label.lower() == str(example.labels["truth"]).lower()
        right += hit
        consistent[set_, sentence] = consistent.get((set_, sentence), True) and hit
    assert scores.values["accuracy"] == pytest.approx(100 * right / 7) == pytest.approx(100 * 6 / 7)
    assert scores.values["consistency"] == pytest.approx(100 * sum(consistent.values()) / 3) == pytest.approx(200 / 3)
    assert scores.per_example["consistency"] == [100, None, 0, None, None, None, 100]


def test_columns_by_a_fact():
    examples = [replace(e, facts={**e.facts, "form": "both" if n < 2 else "one"}) for n, e in enumerate(STATEMENTS)]
    predicted = predictions_of([{"label": "True"}] * 7, examples)
    scores = PairAccuracy(by=["form"]).build().score(predicted, examples)
    assert scores.values["both"] == 50 and scores.values["one"] == pytest.approx(40)
    assert [*PairAccuracy().build().score(predicted, examples).values] == ["accuracy", "consistency"]


def test_chance():
    scores = PairAccuracy().build().references(STATEMENTS)
    assert scores.values == {
        "chance_accuracy": 50,
        "chance_consistency": pytest.approx(100 * (1 / 4 + 1 / 16 + 1 / 2) / 3),
    }
    assert PairAccuracy().build().references([Example("x", {})]) is None


def test_statements_without_groups_have_no_consistency():
    """Such as those of a table: it would repeat the accuracy."""
    examples = [Example(str(n), {}, labels={"truth": True}) for n in range(2)]
    metric = PairAccuracy().build()
    scores = metric.score(predictions_of([{"label": "True"}, {"label": "False"}], examples), examples)
    assert scores.values == {"accuracy": 50} and metric.references(examples).values == {"chance_accuracy": 50}


@pytest.mark.parametrize("truth", [True, False, None])
def test_nlvr2_shows_true_and_false(truth):
    example = Example("n", {"statement": "two dogs"}, (), {}, {} if truth is None else {"truth": truth})
    prediction = Prediction("n", {"label": "True", "probabilities": {"False": 0.25, "True": 0.75}}, 0.75)
    bars = (Bar("True", 0.75, chosen=True, right=truth is True), Bar("False", 0.25, right=truth is False))
    assert LabelCard().card(example, prediction) == Card(
        bars=bars, right=truth, answers=() if truth is None else (str(truth),)
    )
    assert LabelCard().line(example, prediction) == "True"


class TestTruthBars(RendererSuite):
    def config(self):
        return LabelCard()

    def examples(self):
        return [Example("a", {"statement": "so"}, (), {}, {"truth": False})]

    def predictions(self, examples):
        return [Prediction("a", {"label": "True", "probabilities": {"True": 0.7, "False": 0.3}}, 0.7)]
