"""A step that trains on several data sets: losses by source, all ways to split, and resumes to the bit."""

import json

import pytest
import torch
from kit import toys
from kit.training import micro_batches, single_pairs
from mmgen_encoders import Bert
from mmgen_generators import Masked
from mmgen_inputs import Text
from mmgen_objectives import MaskedWords, SentenceImage

from mmgen.data.collate import Source
from mmgen.examples import Example
from mmgen.model import Objectives, compose
from mmgen.recipe.tables import Step, Training
from mmgen.training.accumulate import Accumulator
from mmgen.training.train import make_material, train

pytestmark = pytest.mark.slow

PAIRS = toys.examples(14)
TEXTS = [Example(f"t{number}", {"caption": example.inputs["caption"][0]}) for number, example in enumerate(PAIRS[:5])]
OBJECTIVES = ("generator", "words", "fits")


def sources(**shares):
    """Pairs of texts for all objectives, and single texts without targets for masked words only."""
    texts = Source(TEXTS, TEXTS[:2], shares.get("texts", 1.0), ("caption",), ("words",), "texts")
    return [Source(PAIRS, PAIRS[:3], shares.get("pairs", 1.0), (), (), "pairs"), texts]


def model(dropout=0.0):
    """A model that writes, predicts masked words, and classifies pairs of captions."""
    torch.manual_seed(0)
    composed = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=dropout),
        {"caption": Text(), "second": Text(fields=("second",))},
        Masked(max_tokens=9),
        texts=[" ".join(toys.WORDS)] * 3,
        objectives=Objectives(
            {"words": MaskedWords(inputs=("caption",), mlm_probability=0.4), "fits": SentenceImage()}
        ),
    )
    with torch.no_grad():
        for parameter in composed.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.1)
    return composed.eval()


def step(**training):
    chosen = {
        "batch_size": 12,
        "micro_batch_size": 4,
        "epochs": 2,
        "learning_rate": 1e-3,
        "precision": "fp32",
        "length_bucket": 2,
    }
    return Step(
        inputs=("caption", "second"),
        train=("backbone",),
        objectives=OBJECTIVES,
        training=Training(**{**chosen, **training}),
    )


def learn(folder, composed, **training):
    folder.mkdir(exist_ok=True)
    train(composed, toys.context(folder, step(**training)), sources())
    return [json.loads(line) for line in (folder / "log.jsonl").read_text().splitlines()]


def written_out(composed, material, number):
    """The losses of an update by their definition, from single examples; gradients are left on the model."""
    total, count = {}, {}
    for _, batch in single_pairs(material, number):
        loss = composed(batch)
        for name, loss_sum in loss.sums.items():
            total[name] = total.get(name, 0) + loss_sum
            count[name] = count.get(name, 0) + loss.counts[name]
    means = {name: total[name] / count[name] for name in total}
    sum(means.values()).backward()
    return {name: mean.item() for name, mean in means.items()}


@pytest.mark.parametrize("micro_batch_size", [100, 4, 1])
def test_every_loss_is_a_mean_over_all_sources_however_an_update_is_split(tmp_path, micro_batch_size):
    composed = model()
    context = toys.context(tmp_path, step(micro_batch_size=micro_batch_size))
    material = make_material(composed, context, sources())
    expected = written_out(composed, material, 0)
    gradients = {name: p.grad.clone() for name, p in composed.named_parameters() if p.grad is not None}
    composed.zero_grad()
    accumulator = Accumulator(context, material, composed, [*composed.parameters()])
    means = accumulator.gradients(0, micro_batches(material))
    assert means.losses == pytest.approx(expected, abs=1e-5)
    split = {name: p.grad for name, p in composed.named_parameters() if p.grad is not None}
    torch.testing.assert_close(split, gradients, atol=1e-6, rtol=1e-3)


@pytest.mark.slow
def test_lack_of_memory_changes_nothing(tmp_path, monkeypatch):
    """Micro-batches of both sources are split, the second time after some updates."""
    free, cramped = model(), model()
    full_log = learn(tmp_path / "free", free)
    forward, passed = cramped.forward, []

    def short(batch):
        if batch.size > (1 if len(passed) > 9 else 2):
            raise torch.OutOfMemoryError("CUDA out of memory")
        passed.append({*batch.targets})
        return forward(batch)

    cramped.forward = short
    cut = learn(tmp_path / "cramped", cramped)
    assert [record["loss"] for record in cut] == pytest.approx([record["loss"] for record in full_log], abs=1e-5)
    assert (
        cut[-1]["micro_batch_size"] < cut[0]["micro_batch_size"] < 4 and {"words"} in passed and {*OBJECTIVES} in passed
    )
    for ours, theirs in zip(cut, full_log, strict=True):
        assert ours["losses"] == pytest.approx(theirs["losses"], abs=1e-5)
