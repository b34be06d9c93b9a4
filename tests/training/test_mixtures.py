"""A step with several losses and data sets: the gradient is that of the means over an update, however it is split."""

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
from mmgen.training.train import make_material

pytestmark = pytest.mark.slow

PAIRS = toys.examples(14)
TEXTS = [Example(f"t{number}", {"caption": example.inputs["caption"][0]}) for number, example in enumerate(PAIRS[:5])]
OBJECTIVES = ("generator", "words", "fits")


def sources(**shares):
    """Pairs of texts for all objectives, and single texts without targets for masked words only."""
    texts = Source(TEXTS, TEXTS[:2], shares.get("texts", 1.0), ("caption",), ("words",), "texts")
    return [Source(PAIRS, PAIRS[:3], shares.get("pairs", 1.0), (), (), "pairs"), texts]


def model():
    """A model that writes, predicts masked words, and classifies pairs of captions."""
    torch.manual_seed(0)
    composed = compose(
        Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=4, vocab_size=90, dropout=0.0),
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
