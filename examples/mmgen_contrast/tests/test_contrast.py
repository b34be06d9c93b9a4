"""The objective passes mmgen's suite; its loss is that of the definition, and it predicts what the loss compares."""

import math

import pytest
import torch
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.evaluation.answers import predict
from mmgen.examples import Example
from mmgen.model import Objectives, compose
from mmgen.testing import ObjectiveSuite, Words

from mmgen_contrast import Contrastive, ContrastiveLoss

PAIRS = [("dog", "red"), ("cat", "green"), ("ball", "blue"), ("tree", "black"), ("cow", "near"), ("car", "water")]
EXAMPLES = [Example(a, {"caption": a, "second": b}, (a,)) for a, b in PAIRS]
CONFIG = Contrastive(inputs=("caption", "second"), projection_dim=8)
INPUTS = {"caption": Words(), "second": Words(fields=("second",))}


class TestContrastive(ObjectiveSuite):
    kind = Contrastive

    def config(self):
        # the suite's learning rate is too high for CLIP's scale
        return self.kind(inputs=("caption", "second"), projection_dim=8, logit_scale_init_value=1.0)

    def inputs(self):
        return INPUTS

    def examples(self):
        return EXAMPLES


class TestContrastiveLoss(TestContrastive):
    kind = ContrastiveLoss


def model():
    torch.manual_seed(0)
    backbone, texts = TestContrastive().backbone_config(), [word for pair in PAIRS for word in pair]
    return compose(backbone, INPUTS, None, texts=texts, objectives=Objectives({"contrast": CONFIG})).eval()


def loss_and_vectors(built, examples):
    batch = Collator(built, built.inputs, ("contrast",), RngKey(0, "x"))(examples, [0] * len(examples))
    with torch.no_grad():
        return built(batch).sums["contrast.loss"].item(), built.objective("contrast").vectors(built, batch)


def naive_loss(left, right, examples):
    """Row by row: every other row with another caption and another second text is a negative."""
    scale, total = math.exp(2.6592), 0.0
    for row, example in enumerate(examples):
        rest = [n for n, other in enumerate(examples) if not shared(example, other)]
        for queries, keys in ((left, right), (right, left)):
            similarities = [
                scale * sum(a * b for a, b in zip(queries[row], keys[n], strict=True)) for n in [row, *rest]
            ]
            total -= math.log(math.exp(similarities[0]) / sum(map(math.exp, similarities))) / 2
    return total


def shared(first, second):
    return any(first.inputs[name] == second.inputs[name] for name in ("caption", "second"))


def test_the_loss_is_the_mean_of_both_directions():
    loss, (left, right) = loss_and_vectors(model(), EXAMPLES)
    assert left.norm(dim=1).sub(1).abs().max() < 1e-6 and left.shape == (6, 8)
    assert loss == pytest.approx(naive_loss(left.tolist(), right.tolist(), EXAMPLES), rel=1e-4)


def test_rows_that_show_the_same_are_no_negatives():
    """Three questions about one picture, and a picture with another's text."""
    more = [Example(f"again {n}", {"caption": "dog", "second": word}, ("dog",)) for n, word in enumerate(("blue", "a"))]
    examples = [*EXAMPLES, *more]
    loss, (left, right) = loss_and_vectors(model(), examples)
    assert [sum(not shared(example, other) for other in examples) for example in examples] == [5, 7, 6, 7, 7, 7, 4, 5]
    assert loss == pytest.approx(naive_loss(left.tolist(), right.tolist(), examples), rel=1e-4)


def test_one_row_has_nothing_to_compare():
    assert loss_and_vectors(model(), EXAMPLES[:1])[0] == 0


def test_predictions_are_the_vectors_that_the_loss_compares():
    built = model()
    _, (left, right) = loss_and_vectors(built, EXAMPLES)
    predictions = predict(built, EXAMPLES, "contrast", batch_size=4)
    assert [prediction.id for prediction in predictions] == [example.id for example in EXAMPLES]
    for row, prediction in enumerate(predictions):
        assert [*prediction.value] == ["caption", "second"]
        first, second = prediction.value.values()
        assert first == pytest.approx(left[row].tolist(), abs=2e-6)
        assert second == pytest.approx(right[row].tolist(), abs=2e-6)
        assert prediction.score == pytest.approx(sum(a * b for a, b in zip(first, second, strict=True)), abs=1e-5)
        assert all(len(str(abs(number))) <= 8 or abs(number) < 1e-4 for number in first)


@pytest.mark.parametrize(
    ("inputs", "problem"),
    [
        (("image", "caption"), "compares 'image' and 'caption', but the step does not read 'image'"),
        (("caption", "caption"), "compares 'caption' with itself; name two inputs"),
        (("caption", "second"), ""),
    ],
)
def test_inputs_that_do_not_fit(inputs, problem):
    assert Contrastive(inputs=inputs).errors(INPUTS) == problem
