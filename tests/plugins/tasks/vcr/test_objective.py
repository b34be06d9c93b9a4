"""Multiple choice: a row a choice, compared within their example."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F
from kit.objectives import WORDS, TaskObjectiveSuite, batch_of, examples, loss_of, model, predictions, regions
from mmgen_encoders import Bert
from mmgen_masked import Masked
from mmgen_objectives import MaskedWords
from mmgen_tasks import MultipleChoice, TrueOrFalse
from mmgen_text import Text

from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.model import Objectives, compose
from mmgen.tensors import All

pytestmark = pytest.mark.slow


class TestMultipleChoice(TaskObjectiveSuite):
    def config(self):
        return MultipleChoice(dropout=0.0)

    def inputs(self):
        return {"question": Text(), "choice": Text(), "image": regions()}


@pytest.mark.parametrize("loss", ["softmax", "bce"])
def test_choices_are_rows_and_compared_within_their_example(loss):
    inputs = {"question": Text(), "choice": Text(), "image": regions()}
    made, some = model(MultipleChoice(loss=loss), inputs), examples()
    alone = model(TrueOrFalse(), inputs)
    shared = {name: value for name, value in made.state_dict().items() if ".own." not in name}
    alone.load_state_dict(shared, strict=False)
    expected, told = 0.0, []
    for example in some:
        rows = [replace(example, inputs=example.inputs | {"choice": choice}) for choice in example.labels["choices"]]
        states = [alone.encode(batch_of(alone, [row])).states for row in rows]
        logits = torch.cat([made.objective("own").head(made.backbone.pooled(each)) for each in states]).squeeze(-1)
        right = torch.tensor([float(place == example.labels["choice"]) for place in range(len(rows))])
        if loss == "softmax":
            expected, shares = expected - (logits.log_softmax(-1) * right).sum(), logits.softmax(-1)
        else:
            expected = expected + F.binary_cross_entropy_with_logits(logits, right, reduction="sum")
            shares = logits.sigmoid()
        told.append(shares)
    found = loss_of(made, some)
    assert found.counts == {"own.loss": 6 if loss == "softmax" else sum(len(e.labels["choices"]) for e in some)}
    assert torch.allclose(found.sums["own.loss"], expected, atol=1e-3)
    for one, shares in zip(predictions(made, some), told, strict=True):
        assert one.value["choice"] == int(shares.argmax())
        assert one.value["probabilities"] == pytest.approx(shares.tolist(), abs=1e-5)


def test_the_rows_of_an_example_hide_words_apart_from_one_another():
    inputs = {"question": Text(), "choice": Text()}
    torch.manual_seed(0)
    made = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=120),
        inputs,
        Masked(max_tokens=9),
        texts=[WORDS] * 3,
        objectives=Objectives({"words": MaskedWords(mlm_probability=0.5), "own": MultipleChoice()}),
    )
    example = replace(examples()[0], inputs={"question": WORDS, "choice": "x"})

    def hidden(objectives, one):
        batch = Collator(made, made.inputs, objectives, RngKey(0, "x"))([one], [0])
        return batch.targets["words"].labels["question"] != -100

    rows = hidden(("words", "own"), example)
    assert len(rows) == 4 and len({tuple(row.tolist()) for row in rows}) == 4
    assert torch.equal(rows[:1], hidden(("words",), example))  # what is drawn for an example of one row stays


def test_looking_at_choices_does_not_wait_for_the_device():
    """How large the table is, loader workers tell."""
    made, some = model(MultipleChoice(), {"choice": Text()}), examples()
    labels = batch_of(made, some).targets["own"].labels
    counts = [len(example.labels["choices"]) for example in some]
    assert labels["there"].sum(1).tolist() == counts and labels["there"].shape == (6, 4)
    meta = {name: each.to("meta") for name, each in labels.items()}
    head = SimpleNamespace(encode=lambda _: SimpleNamespace(states=None), backbone=SimpleNamespace(pooled=None))
    head.backbone.pooled = lambda _: torch.zeros(sum(counts), 32, device="meta")
    assert made.objective("own").to("meta").logits(head, None, meta).shape == (6, 4)  # no number can be looked at


def test_mentions_of_a_choice_come_with_it():
    reader = model(MultipleChoice(), {"choice": Text()}).objective("own").reader
    mentions = (((0, 1, (0,)),), (), (), ())
    example = replace(examples()[0], labels=examples()[0].labels | {"choice_mentions": mentions})
    rows = reader.rows(example, None, None)
    assert [row.inputs["choice_mentions"] for row in rows] == [All(each) for each in mentions]
