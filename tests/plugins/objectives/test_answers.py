"""Answers as classes, and as choices."""

from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from kit.objectives import (
    KNOWN,
    QUESTION,
    WORDS,
    TaskObjectiveSuite,
    batch_of,
    examples,
    loss_of,
    model,
    model_of,
    predictions,
    regions,
)
from mmgen_encoders import Bert, Roberta
from mmgen_inputs import Text
from mmgen_objectives import MaskedWords
from mmgen_objectives.tasks import AnswerClasses, MultipleChoice, RankedAnswers, RankedChoices, TrueOrFalse

from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.evaluation.answers import likelihood
from mmgen.examples import All

pytestmark = pytest.mark.slow


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


def test_a_prediction_lists_the_likeliest_answers_without_the_unknown_one():
    network = model(AnswerClasses(), QUESTION)
    with torch.no_grad():
        network.objective("own").head.bias[0] = 50.0
    for prediction, example in zip(predictions(network, examples()), examples(), strict=True):
        logits = answer_logits(network, example)[1:]
        shares = dict(zip(KNOWN[1:], logits.softmax(-1).tolist(), strict=True))
        best = sorted(shares, key=shares.get, reverse=True)[:2]
        assert prediction.id == example.id and prediction.value["label"] == best[0]
        assert list(prediction.value["probabilities"])[: len(best)] == best
        assert prediction.score == pytest.approx(shares[best[0]], abs=1e-5)


@pytest.mark.parametrize("backbone", [Bert, Roberta])
def test_the_head_is_initialised_from_the_masked_lm_heads_transform(backbone):
    network, states, head_inputs = model(AnswerClasses(transform=True), QUESTION, backbone), torch.randn(3, 32), []
    network.backbone.model.get_output_embeddings().register_forward_hook(lambda *call: head_inputs.append(*call[1]))
    objective = network.objective("own")
    with torch.no_grad():
        network.backbone.logits(states)  # whose last layer reads the transformed states
        assert not torch.allclose(objective.transform(states), head_inputs[0])
        objective.init_from_model(network)
        assert torch.allclose(objective.transform(states), head_inputs[0], atol=1e-6)


CHOOSING = {"question": Text(), "choice": Text(), "image": regions()}


class TestMultipleChoice(TaskObjectiveSuite):
    def config(self):
        return MultipleChoice(dropout=0.0)

    def inputs(self):
        return CHOOSING


@pytest.mark.parametrize("loss", ["softmax", "bce"])
def test_choices_are_rows_and_compared_within_their_example(loss):
    network, all_examples = model(MultipleChoice(loss=loss), CHOOSING), examples()
    single_rows = model(TrueOrFalse(), CHOOSING)
    shared = {name: value for name, value in network.state_dict().items() if ".own." not in name}
    single_rows.load_state_dict(shared, strict=False)
    expected, expected_shares = 0.0, []
    for example in all_examples:
        rows = [replace(example, inputs=example.inputs | {"choice": choice}) for choice in example.labels["choices"]]
        states = [single_rows.encode(batch_of(single_rows, [row])).states for row in rows]
        logits = network.objective("own").head(torch.cat([*map(network.backbone.pooled, states)])).squeeze(-1)
        right = torch.tensor([float(place == example.labels["choice"]) for place in range(len(rows))])
        if loss == "softmax":
            expected, shares = expected - (logits.log_softmax(-1) * right).sum(), logits.softmax(-1)
        else:
            expected = expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum")
            shares = logits.sigmoid()
        expected_shares.append(shares)
    loss_sums = loss_of(network, all_examples)
    assert loss_sums.counts == {"own.loss": 6 if loss == "softmax" else sum(map(len, expected_shares))}
    assert torch.allclose(loss_sums.sums["own.loss"], expected, atol=1e-3)
    for prediction, shares in zip(predictions(network, all_examples), expected_shares, strict=True):
        assert prediction.value["choice"] == int(shares.argmax())
        assert prediction.value["probabilities"] == pytest.approx(shares.tolist(), abs=1e-5)


def test_the_rows_of_an_example_mask_words_independently():
    objectives = {"words": MaskedWords(mlm_probability=0.5), "own": MultipleChoice()}
    network = model_of({"question": Text(), "choice": Text()}, objectives)
    example = replace(examples()[0], inputs={"question": WORDS, "choice": "x"})

    def hidden(objectives, row):
        batch = Collator(network, network.inputs, objectives, RngKey(0, "x"))([row], [0])
        return batch.targets["words"].labels["question"] != -100

    rows = hidden(("words", "own"), example)
    assert len(rows) == 4 and len({tuple(row.tolist()) for row in rows}) == 4
    assert torch.equal(rows[:1], hidden(("words",), example))  # an example of one row gets the same draws


def test_a_row_has_the_mentions_of_its_choice():
    reader = model(MultipleChoice(), {"choice": Text()}).objective("own").reader
    mentions = (((0, 1, (0,)),), (), (), ())
    example = replace(examples()[0], labels=examples()[0].labels | {"choice_mentions": mentions})
    rows = reader.rows(example, None, None)
    assert [row.inputs["choice_mentions"] for row in rows] == [All(choice_mentions) for choice_mentions in mentions]


class TestRankedChoices(TaskObjectiveSuite):
    def config(self):
        return RankedChoices()

    def inputs(self):
        return QUESTION


class TestRankedAnswers(TestRankedChoices):
    def config(self):
        return RankedAnswers()

    def examples(self):
        return [replace(example, targets=(KNOWN[0],)) for example in super().examples()]


@pytest.mark.parametrize("config", [RankedChoices(), RankedAnswers()], ids=lambda config: config.type)
def test_texts_are_ranked_by_their_likelihood(config, monkeypatch):
    monkeypatch.setattr("mmgen_objectives.ranking.TOGETHER", 2)
    network, asked = model(config, QUESTION), examples()
    texts = [example.labels["choices"] if config.gives == "choice" else KNOWN[1:] for example in asked]
    measured = likelihood(network, [replace(e, targets=of) for e, of in zip(asked, texts, strict=True)])
    for prediction, of, row in zip(predictions(network, asked), texts, measured, strict=True):
        shares = torch.tensor([text.log_probability for text in row]).softmax(0).tolist()
        best, named = shares.index(max(shares)), dict(zip(of, shares, strict=True), **{"<unk>": 0.0})
        expected = {"choice": best} if config.gives == "choice" else {"label": of[best]}
        expected["probabilities"] = pytest.approx(shares if config.gives == "choice" else named, abs=1e-5)
        assert (prediction.value, prediction.score) == (expected, pytest.approx(shares[best], abs=1e-5))
