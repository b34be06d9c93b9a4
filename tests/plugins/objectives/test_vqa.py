"""The answer as a class: objective, scores and card."""

import pytest
import torch
from kit.judged import QUESTIONS, TEN, Judges, predictions_of, question_example
from kit.objectives import KNOWN, QUESTION, TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions
from mmgen_encoders import Bert, Roberta
from mmgen_objectives.tasks import AnswerClasses
from mmgen_tasks import LabelCard, VqaAccuracy

from mmgen.cards import Bar, Card
from mmgen.examples import Example, Generation, Prediction
from mmgen.testing import MetricSuite, RendererSuite


@pytest.mark.slow
class TestAnswerClasses(TaskObjectiveSuite):
    def config(self):
        return AnswerClasses(dropout=0.0, loss="bce", transform=True)

    def inputs(self):
        return QUESTION


def answer_logits(network, example):
    """The logits of one row, computed step by step from the state of the question's last slot."""
    batch = batch_of(network, [example])
    prefix = network.prefix(batch).slots
    states = network.backbone.encode(prefix).last[0]
    mask_slot = int(prefix.of("question")[0].nonzero()[-1])
    assert torch.equal(prefix.states[0, mask_slot], network.backbone.embed(torch.tensor([network.backbone.mask_id]))[0])
    objective = network.objective("own")
    return objective.head(objective.transform(states[mask_slot]))


@pytest.mark.slow
@pytest.mark.parametrize("loss", ["kl", "bce"])
def test_answers_are_weighted_by_the_people_who_gave_them(loss):
    network, first_examples = model(AnswerClasses(loss=loss), QUESTION), examples()[:3]
    expected = 0.0
    for example in first_examples:
        logits = answer_logits(network, example)
        weights = torch.tensor([example.labels["answers"].get(answer, 0.0) for answer in KNOWN])
        if loss == "kl":
            shares = logits.log_softmax(-1)
            expected += sum(w * (w.log() - s) for w, s in zip(weights, shares, strict=True) if w)
        else:
            shares = logits.sigmoid()
            expected -= (weights * shares.log() + (1 - weights) * (1 - shares).log()).sum()
    loss_sums = loss_of(network, first_examples)
    assert loss_sums.counts == {"own.loss": 3}
    assert torch.allclose(loss_sums.sums["own.loss"], expected, atol=1e-4)


@pytest.mark.slow
def test_a_prediction_lists_the_likeliest_answers_and_never_the_unknown_one_first():
    network = model(AnswerClasses(), QUESTION)
    with torch.no_grad():
        network.objective("own").head.bias[0] = 50.0
    for prediction, example in zip(predictions(network, examples()), examples(), strict=True):
        logits = answer_logits(network, example)[1:]
        shares = dict(zip(KNOWN[1:], logits.softmax(-1).tolist(), strict=True))
        best = sorted(shares, key=shares.get, reverse=True)[:10]
        assert (
            prediction.id == example.id
            and list(prediction.value["probabilities"])[: len(best)] == best
            and prediction.value["label"] == best[0]
        )
        assert prediction.score == pytest.approx(shares[best[0]], abs=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("backbone", [Bert, Roberta])
def test_the_head_is_initialised_from_the_masked_lm_heads_transform(backbone):
    network = model(AnswerClasses(transform=True), QUESTION, backbone)
    states = torch.randn(3, 32)
    with torch.no_grad():
        assert not torch.allclose(network.objective("own").transform(states), _transformed(network.backbone, states))
        network.objective("own").init_from_model(network)
        assert torch.allclose(
            network.objective("own").transform(states), _transformed(network.backbone, states), atol=1e-6
        )


def _transformed(backbone, states):
    """The input of the masked-LM head's last layer."""
    head_inputs = []
    hook = backbone.model.get_output_embeddings().register_forward_hook(
        lambda _, inputs, __: head_inputs.append(inputs[0])
    )
    backbone.logits(states)
    hook.remove()
    return head_inputs[0]


class TestVqaAccuracy(Judges):
    scored_examples = QUESTIONS

    def config(self):
        return VqaAccuracy(by=("question_type",))

    def value(self, n, example):
        return {"label": example.targets[0] if n % 2 else "yes", "probabilities": {}}


class TestVqaAccuracyOfTexts(TestVqaAccuracy):
    def generations(self, examples):
        return MetricSuite.generations(self, examples)


def test_vqa_accuracy_by_type_of_labels_and_texts():
    labels = predictions_of([{"label": text} for text in ("yes", "no", "2", "dark red", "green")], QUESTIONS)
    scores = VqaAccuracy(by=("question_type",)).build().score(labels, QUESTIONS)
    assert {name: round(value, 6) for name, value in scores.values.items()} == {
        "accuracy": 78.0,
        "yes/no": 100.0,
        "number": 100.0,
        "other": 45.0,
        "how many": 100.0,
        "is the": 100.0,
        "what color is the": 45.0,
    }
    assert [*scores.values][:4] == ["accuracy", "yes/no", "number", "other"]
    assert scores.per_example["number"] == [None, None, pytest.approx(100), None, None]
    texts = [Generation(prediction.id, prediction.value["label"], (), 0.0) for prediction in labels]
    assert VqaAccuracy().build().score(texts, QUESTIONS).values == {
        name: scores.values[name] for name in ("accuracy", "yes/no", "number", "other")
    }


def test_accuracy_of_people_and_of_the_most_common_answers():
    scores = VqaAccuracy(by=("question_type",)).build().references(QUESTIONS)
    # six say red and five others agree with each; three have two others; one has none
    assert scores.values["other"] == pytest.approx(10 * (6 + 3 * 2 / 3))
    assert scores.per_example["yes/no"][:2] == [100, pytest.approx(10 * (5 + 4))]
    assert scores.values["chance_accuracy"] == pytest.approx(100)  # four or more people say yes, 2 and red
    assert VqaAccuracy().build().references([question_example(0, TEN), question_example(1, ("blue",) * 10)]).values == {
        "accuracy": pytest.approx((80 + 100) / 2),
        "other": pytest.approx((80 + 100) / 2),
        "chance_accuracy": 50,  # blue, the most common of twenty answers
        "chance_other": 50,
    }


def test_questions_without_answers_are_not_scored():
    examples = [*QUESTIONS[:1], Example("q9", {"image": "2"})]
    scores = VqaAccuracy().build().score(predictions_of([{"label": "yes"}] * 2, examples), examples)
    assert scores.values == {"accuracy": 100, "yes/no": 100} and scores.per_example["accuracy"] == [100, None]
    assert scores.notes == ("1 of 2 examples have no answers of people, and are not scored",)
    assert VqaAccuracy().build().score(predictions_of([{"label": "yes"}], examples[1:]), examples[1:]).values == {
        "accuracy": None
    }


def test_vqa_shows_answers_as_bars_and_marks_answers_of_people():
    example = Example("q", {"question": "what is it?"}, (), {}, {"answers": {"cat": 1.0, "dog": 0.3}})
    prediction = Prediction("q", {"label": "dog", "probabilities": {"dog": 0.7, "red": 0.2}}, 0.7)
    assert LabelCard().card(example, prediction) == Card(
        bars=(Bar("dog", 0.7, chosen=True, right=True), Bar("red", 0.2)), right=True, answers=("cat", "dog")
    )
    assert LabelCard().line(example, prediction) == "dog"


class TestAnswerBars(RendererSuite):
    def config(self):
        return LabelCard()

    def examples(self):
        return [Example("a", {"question": "what?"}, (), {}, {"answers": {"red": 1.0}}), Example("b", {})]

    def predictions(self, examples):
        value = {"label": "red", "probabilities": {"red": 0.7, "blue": 0.2}}
        return [Prediction(example.id, value, 0.7) for example in examples]
