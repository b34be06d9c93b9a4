"""Two losses with separate counts: their gradient is that of the means over an update, however it is split."""

import json
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from kit import toys
from kit.training import micro_batches, single_pairs
from mmgen_generators.masked import MaskedGenerator, MaskedTargets

from mmgen.data.collate import Collator, Source
from mmgen.recipe.tables import Step, Training
from mmgen.tensors import MASK, Loss
from mmgen.training.accumulate import Accumulator
from mmgen.training.train import make_material, train

EXAMPLES = toys.examples(12)


class Both(MaskedTargets):
    """Counts tokens, and texts."""

    losses = ("loss", "begin")

    def collate(self, rows):
        targets = super().collate(rows)
        return replace(
            targets, counts={**targets.counts, "begin": sum(len(example.targets) for example in rows.examples)}
        )


class WordsAndBegin(MaskedGenerator):
    """The masked generator's loss over all tokens, and a loss over first tokens only, with the same weight."""

    def __init__(self, generator, backbone):
        torch.nn.Module.__init__(self)
        self.reader = Both.__new__(Both)
        self.reader.__dict__ |= generator.reader.__dict__

    def forward(self, model, batch, targets):
        rows, labels = model.rows(batch, targets.tail)
        first = (rows.layout.role == MASK) & (rows.layout.time == 1)
        logits = model.backbone.logits(model.backbone.encode(rows).last)
        sums = {
            name: F.cross_entropy(logits[counted], labels[counted], reduction="sum")
            for name, counted in (("loss", labels != -100), ("begin", first))
        }
        return Loss(sums)


def two_losses():
    model = toys.model(dropout=0.0)
    model.generator = WordsAndBegin(model.generator, model.backbone)
    return model


def step(**training):
    chosen = {
        "batch_size": 12,
        "micro_batch_size": 5,
        "epochs": 2,
        "learning_rate": 1e-3,
        "precision": "fp32",
        "length_bucket": 1,
    }
    return Step(inputs=("caption",), train=("backbone",), training=Training(**{**chosen, **training}))


def written_out(model, material, number):
    """The loss of an update by its definition, from single examples; its gradients are left on the model."""
    total, counts = {}, {}
    for _, batch in single_pairs(material, number):
        loss = model(batch)
        for name, loss_sum in loss.sums.items():
            total[name] = total.get(name, 0) + loss_sum
            counts[name] = counts.get(name, 0) + loss.counts[name]
    means = {name: total[name] / counts[name] for name in total}
    sum(means.values()).backward()
    return {name: mean.item() for name, mean in means.items()}


def gradients(model):
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


@pytest.mark.parametrize("micro_batch_size", [100, 5, 1])
def test_the_gradient_is_that_of_the_means_however_an_update_is_split(tmp_path, micro_batch_size):
    model = two_losses()
    context = toys.context(tmp_path, step(micro_batch_size=micro_batch_size))
    material = make_material(model, context, [Source(EXAMPLES, EXAMPLES[:2])])
    losses = written_out(model, material, 0)
    expected = gradients(model)
    model.zero_grad()
    accumulator = Accumulator(context, material, model, [*model.parameters()])
    means = accumulator.gradients(0, micro_batches(material))
    assert means.losses == pytest.approx(losses, abs=1e-5)
    assert means.loss == pytest.approx(sum(losses.values()), abs=1e-5)
    torch.testing.assert_close(gradients(model), expected, atol=1e-6, rtol=1e-4)


@pytest.mark.slow
def test_losses_are_in_the_log_by_name_and_validation_adds_their_means(tmp_path):
    model = two_losses()
    train(model, toys.context(tmp_path, step()), [Source(EXAMPLES, EXAMPLES[:5])])
    records = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    for record in records:
        assert set(record["losses"]) == {"generator.loss", "generator.begin"}
        assert record["loss"] == pytest.approx(sum(record["losses"].values()), abs=1e-5)
    model.eval()
    loss = model(Collator(model, ["caption"])([toys_resolved(example) for example in EXAMPLES[:5]]))
    assert records[-1]["validation_loss"] == pytest.approx(loss.mean.item(), abs=1e-5)


def toys_resolved(example):
    return replace(example, inputs={"caption": example.inputs["caption"][0]})
