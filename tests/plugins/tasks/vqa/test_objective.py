"""Answers as classes: losses as the papers define them, predictions, and how the head is initialised."""

import pytest
import torch
from kit.objectives import KNOWN, QUESTION, TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions
from mmgen_encoders import Bert, Roberta
from mmgen_tasks import AnswerClasses

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
    network = model(AnswerClasses(top_k=2), QUESTION)
    with torch.no_grad():
        network.objective("own").head.bias[0] = 50.0
    for prediction, example in zip(predictions(network, examples()), examples(), strict=True):
        logits = answer_logits(network, example)[1:]
        shares = dict(zip(KNOWN[1:], logits.softmax(-1).tolist(), strict=True))
        best = sorted(shares, key=shares.get, reverse=True)[:2]
        assert (
            prediction.id == example.id
            and list(prediction.value["probabilities"]) == best
            and prediction.value["label"] == best[0]
        )
        assert prediction.score == pytest.approx(shares[best[0]], abs=1e-5)


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
