"""Multiple choice: one row per choice, compared within an example."""

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


def test_the_table_of_choices_does_not_wait_for_the_device():
    """The size of the table comes from loader workers."""
    network, all_examples = model(MultipleChoice(), {"choice": Text()}), examples()
    labels = batch_of(network, all_examples).targets["own"].labels
    counts = [len(example.labels["choices"]) for example in all_examples]
    assert labels["present"].sum(1).tolist() == counts and labels["present"].shape == (6, 4)
    meta = {name: labels_of_row.to("meta") for name, labels_of_row in labels.items()}
    head = SimpleNamespace(encode=lambda _: SimpleNamespace(states=None), backbone=SimpleNamespace(pooled=None))
    head.backbone.pooled = lambda _: torch.zeros(sum(counts), 32, device="meta")
    assert network.objective("own").to("meta").logits(head, None, meta).shape == (6, 4)  # a meta tensor has no values


def test_a_row_has_the_mentions_of_its_choice():
    reader = model(MultipleChoice(), {"choice": Text()}).objective("own").reader
    mentions = (((0, 1, (0,)),), (), (), ())
    example = replace(examples()[0], labels=examples()[0].labels | {"choice_mentions": mentions})
    rows = reader.rows(example, None, None)
    assert [row.inputs["choice_mentions"] for row in rows] == [All(choice_mentions) for choice_mentions in mentions]
