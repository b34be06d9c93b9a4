"""Answers as classes: losses by the papers' definitions, what is predicted, and what the head begins as."""

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


def answer_logits(made, example):
    """One row, written out: the state of the last slot of the question."""
    batch = batch_of(made, [example])
    prefix = made.prefix(batch).slots
    states = made.backbone.encode(prefix).last[0]
    asked = int(prefix.of("question")[0].nonzero()[-1])
    assert torch.equal(prefix.states[0, asked], made.backbone.embed(torch.tensor([made.backbone.mask_id]))[0])
    objective = made.objective("own")
    return objective.head(objective.transform(states[asked]))


@pytest.mark.parametrize("loss", ["kl", "bce"])
def test_answers_are_weighed_as_people_gave_them(loss):
    made, some = model(AnswerClasses(loss=loss), QUESTION), examples()[:3]
    expected = 0.0
    for example in some:
        logits = answer_logits(made, example)
        weights = torch.tensor([example.labels["answers"].get(answer, 0.0) for answer in KNOWN])
        if loss == "kl":
            shares = logits.log_softmax(-1)
            expected += sum(w * (w.log() - s) for w, s in zip(weights, shares, strict=True) if w)
        else:
            shares = logits.sigmoid()
            expected -= (weights * shares.log() + (1 - weights) * (1 - shares).log()).sum()
    found = loss_of(made, some)
    assert found.counts == {"own.loss": 3}
    assert torch.allclose(found.sums["own.loss"], expected, atol=1e-4)


def test_the_likeliest_answers_are_told_and_never_the_unknown_one():
    made = model(AnswerClasses(top_k=2), QUESTION)
    with torch.no_grad():
        made.objective("own").head.bias[0] = 50.0
    for one, example in zip(predictions(made, examples()), examples(), strict=True):
        logits = answer_logits(made, example)[1:]
        shares = dict(zip(KNOWN[1:], logits.softmax(-1).tolist(), strict=True))
        best = sorted(shares, key=shares.get, reverse=True)[:2]
        assert one.id == example.id and list(one.value["probabilities"]) == best and one.value["label"] == best[0]
        assert one.score == pytest.approx(shares[best[0]], abs=1e-5)


@pytest.mark.parametrize("backbone", [Bert, Roberta])
def test_the_head_begins_as_the_masked_lm_heads_transform(backbone):
    made = model(AnswerClasses(transform=True), QUESTION, backbone)
    states = torch.randn(3, 32)
    with torch.no_grad():
        assert not torch.allclose(made.objective("own").transform(states), _transformed(made.backbone, states))
        made.objective("own").begin(made)
        assert torch.allclose(made.objective("own").transform(states), _transformed(made.backbone, states), atol=1e-6)


def _transformed(backbone, states):
    """The input of the masked-LM head's last layer."""
    seen = []
    hook = backbone.model.get_output_embeddings().register_forward_hook(lambda _, given, __: seen.append(given[0]))
    backbone.logits(states)
    hook.remove()
    return seen[0]
