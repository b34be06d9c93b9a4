"""The chosen answer: objective, scores and card."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from kit.judged import ITEMS, Judges, predictions_of
from kit.objectives import WORDS, TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions, regions
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_objectives import MaskedWords
from mmgen_objectives.tasks import MultipleChoice, TrueOrFalse
from mmgen_tasks import ChoiceAccuracy, ChoiceCard, LabelCard

from mmgen.cards import Bar, Card, Choice, Piece
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.examples import All, Example, Prediction
from mmgen.model import Objectives, compose
from mmgen.tensors import Targets
from mmgen.testing import RendererSuite


@pytest.mark.slow
class TestMultipleChoice(TaskObjectiveSuite):
    def config(self):
        return MultipleChoice(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "choice": Text(), "image": regions()}


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["softmax", "bce"])
def test_choices_are_rows_and_compared_within_their_example(loss):
    inputs = {"question": Text(), "choice": Text(), "image": regions()}
    network, all_examples = model(MultipleChoice(loss=loss), inputs), examples()
    single_rows = model(TrueOrFalse(), inputs)
    shared = {name: value for name, value in network.state_dict().items() if ".own." not in name}
    single_rows.load_state_dict(shared, strict=False)
    expected, expected_shares = 0.0, []
    for example in all_examples:
        rows = [replace(example, inputs=example.inputs | {"choice": choice}) for choice in example.labels["choices"]]
        states = [single_rows.encode(batch_of(single_rows, [row])).states for row in rows]
        logits = torch.cat(
            [network.objective("own").head(network.backbone.pooled(row_states)) for row_states in states]
        ).squeeze(-1)
        right = torch.tensor([float(place == example.labels["choice"]) for place in range(len(rows))])
        if loss == "softmax":
            expected, shares = expected - (logits.log_softmax(-1) * right).sum(), logits.softmax(-1)
        else:
            expected = expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum")
            shares = logits.sigmoid()
        expected_shares.append(shares)
    loss_sums = loss_of(network, all_examples)
    assert loss_sums.counts == {
        "own.loss": 6 if loss == "softmax" else sum(len(e.labels["choices"]) for e in all_examples)
    }
    assert torch.allclose(loss_sums.sums["own.loss"], expected, atol=1e-3)
    for prediction, shares in zip(predictions(network, all_examples), expected_shares, strict=True):
        assert prediction.value["choice"] == int(shares.argmax())
        assert prediction.value["probabilities"] == pytest.approx(shares.tolist(), abs=1e-5)


@pytest.mark.slow
def test_the_rows_of_an_example_mask_words_independently():
    inputs = {"question": Text(), "choice": Text()}
    torch.manual_seed(0)
    network = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=120),
        inputs,
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"words": MaskedWords(mlm_probability=0.5), "own": MultipleChoice()}),
    )
    example = replace(examples()[0], inputs={"question": WORDS, "choice": "x"})

    def hidden(objectives, row):
        batch = Collator(network, network.inputs, objectives, RngKey(0, "x"))([row], [0])
        return batch.targets["words"].labels["question"] != -100

    rows = hidden(("words", "own"), example)
    assert len(rows) == 4 and len({tuple(row.tolist()) for row in rows}) == 4
    assert torch.equal(rows[:1], hidden(("words",), example))  # an example of one row gets the same draws


@pytest.mark.slow
def test_the_table_of_choices_does_not_wait_for_the_device():
    """The size of the table comes from loader workers."""
    network, all_examples = model(MultipleChoice(), {"choice": Text()}), examples()
    labels = batch_of(network, all_examples).targets["own"].labels
    counts = [len(example.labels["choices"]) for example in all_examples]
    assert labels["present"].sum(1).tolist() == counts and labels["present"].shape == (6, 4)
    meta = {name: labels_of_row.to("meta") for name, labels_of_row in labels.items()}
    head = SimpleNamespace(encode=lambda _: SimpleNamespace(states=None), backbone=SimpleNamespace(pooled=None))
    head.backbone.pooled = lambda _: torch.zeros(sum(counts), 32, device="meta")
    assert network.objective("own").to("meta").choice_logits(head, None, Targets({}, meta)).shape == (
        6,
        4,
    )  # a meta tensor has no values


@pytest.mark.slow
def test_a_row_has_the_mentions_of_its_choice():
    reader = model(MultipleChoice(), {"choice": Text()}).objective("own").reader
    mentions = (((0, 1, (0,)),), (), (), ())
    example = replace(examples()[0], labels=examples()[0].labels | {"choice_mentions": mentions})
    rows = reader.rows(example, None, None)
    assert [row.inputs["choice_mentions"] for row in rows] == [All(choice_mentions) for choice_mentions in mentions]


class TestChoiceAccuracy(Judges):
    scored_examples = [
        *ITEMS,
        *(
            Example(f"v-{item}-rationale-{k}", {}, facts={"asks": "rationale", "item": f"v-{item}"})
            for item in range(3)
            for k in range(4)
        ),
    ]

    def config(self):
        return ChoiceAccuracy()

    def value(self, n, example):
        item = int(example.facts["item"][-1])  # the same for all its rationales, whatever answer is given
        place = item if example.facts["asks"] == "answer" else item + 1
        return {"choice": place, "probabilities": [0.4 if k == place else 0.2 for k in range(4)]}


def test_answers_rationales_and_both():
    choices = [0, 1, 2, 0, 0, 0]  # both right; only the answer right; only the rationale right
    scores = ChoiceAccuracy().build().score(predictions_of([{"choice": choice} for choice in choices], ITEMS), ITEMS)
    assert scores.values == {
        "Q->A": pytest.approx(200 / 3),
        "QA->R": pytest.approx(200 / 3),
        "Q->AR": pytest.approx(100 / 3),
    }
    assert scores.per_example["Q->AR"] == [100, None, 0, None, 0, None]
    assert ChoiceAccuracy().build().references(ITEMS).values == {
        "chance_Q->A": 25,
        "chance_QA->R": 25,
        "chance_Q->AR": 6.25,
    }


def test_columns_by_a_fact():
    forms = ["color", "side", "color"]
    examples = [
        replace(example, facts={**example.facts, "form": forms[number // 2]}) for number, example in enumerate(ITEMS)
    ]
    choices = [0, 1, 2, 0, 0, 0]
    scores = (
        ChoiceAccuracy(by=["form"]).build().score(predictions_of([{"choice": c} for c in choices], examples), examples)
    )
    assert {name: value for name, value in scores.values.items() if " " in name} == {
        "Q->A color": 50,
        "Q->A side": 100,
        "QA->R color": 100,
        "QA->R side": 0,
    }
    plain = ChoiceAccuracy().build().score(predictions_of([{"choice": c} for c in choices], examples), examples)
    assert [*plain.values] == ["Q->A", "QA->R", "Q->AR"]


def test_answers_alone_have_no_columns_of_rationales():
    answers = ITEMS[::2]
    metric = ChoiceAccuracy().build()
    assert [*metric.score(predictions_of([{"choice": 0}] * 3, answers), answers).values] == ["Q->A"]
    assert metric.references(answers).values == {"chance_Q->A": 25}


def test_rationales_of_wrong_answers_are_not_scored():
    rationale = Example(
        "v-0-rationale-2", {}, facts={"asks": "rationale", "item": "v-0"}, labels={"choices": ("a",) * 4}
    )
    examples = [*ITEMS[:2], rationale]
    scores = (
        ChoiceAccuracy()
        .build()
        .score(predictions_of([{"choice": 0}, {"choice": 1}, {"choice": 3}], examples), examples)
    )
    assert scores.values == {"Q->A": 100, "QA->R": 100, "Q->AR": 100}
    assert scores.notes == ("1 of 3 examples have no label 'choice', and are not scored",)


def test_choices_of_other_data_have_an_accuracy():
    """Such as those of a table, without `facts["asks"]`; chance follows the number of their choices."""
    examples = [
        Example(f"train-{n}", {}, labels={"choices": ("a", "b", "c", "d", "e")[:count], "choice": 1})
        for n, count in enumerate((2, 5))
    ]
    metric = ChoiceAccuracy().build()
    scores = metric.score(predictions_of([{"choice": 1}, {"choice": 0}], examples), examples)
    assert scores.values == {"accuracy": 50} and scores.per_example["accuracy"] == [100, 0]
    assert metric.references(examples).values == {"chance_accuracy": 35}
    mixed = [*ITEMS[:1], *examples]
    scores = metric.score(predictions_of([{"choice": 0}, {"choice": 1}, {"choice": 0}], mixed), mixed)
    assert scores.values == {"Q->A": 100, "accuracy": 50}


VCR = Example(
    "v",
    {"question": "why is the dog here?", "question_mentions": All(((11, 14, (2,)),))},
    (),
    {},
    {"choices": ("the dog waits", "no"), "choice_mentions": (((4, 7, (2,)),), ()), "choice": 1},
)
QUESTION = (Piece("why is the "), Piece("dog", numbers=(1,)), Piece(" here?"))


def test_vcr_shows_choices_and_numbers_the_objects_of_texts():
    prediction = Prediction("v", {"choice": 0, "probabilities": [0.8, 0.2]}, 0.8)
    assert ChoiceCard().card(VCR, prediction) == Card(
        bars=(Bar("A", 0.8, chosen=True), Bar("B", 0.2, right=True)),
        right=False,
        choices=(Choice((Piece("the "), Piece("dog", numbers=(1,)), Piece(" waits"))), Choice((Piece("no"),), True)),
        texts={"question": QUESTION},
        objects=(2,),
    )
    assert ChoiceCard().line(VCR, prediction) == "the dog waits"


def test_vcr_without_its_texts_shows_letters():
    example, prediction = Example("v", {"question": "why?"}), Prediction("v", {"choice": 1, "probabilities": [0, 1]}, 1)
    assert ChoiceCard().card(example, prediction) == Card(bars=(Bar("A", 0), Bar("B", 1, chosen=True)))
    assert ChoiceCard().line(example, prediction) == "B"


def test_vcr_numbers_objects_where_a_step_classifies():
    label = Prediction("v", {"label": "False", "probabilities": {"False": 0.75, "True": 0.25}}, 0.75)
    assert LabelCard().card(VCR, label) == Card(
        bars=(Bar("False", 0.75, chosen=True), Bar("True", 0.25)), texts={"question": QUESTION}, objects=(2,)
    )
    assert LabelCard().line(VCR, label) == "False"


class TestChoices(RendererSuite):
    def config(self):
        return ChoiceCard()

    def examples(self):
        return [VCR]

    def predictions(self, examples):
        return [Prediction("v", {"choice": 1, "probabilities": [0.25, 0.75]}, 0.75)]
