"""Contrast of two inputs: its loss by the definition, which rows are not negatives, and training in micro-batches."""

import math

import pytest
import torch
from kit import toys
from kit.training import train_step
from mmgen_masked import Masked
from mmgen_objectives import Contrastive, ContrastiveLoss

import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.data.seeds import RngKey
from mmgen.errors import RecipeError
from mmgen.evaluation.predict import predict
from mmgen.model import Objectives, compose
from mmgen.objectives import declaration_problem
from mmgen.recipe.load import load
from mmgen.recipe.tables import Step, Training
from mmgen.registry import installed
from mmgen.tensors import Example
from mmgen.testing import Tiny, Words
from mmgen.testing.toy import THINGS

SECOND = ("red", "green", "blue", "black", "near", "water")
CONFIG = Contrastive(inputs=("caption", "second"), projection_dim=8)
INPUTS = {"caption": Words(), "second": Words(fields=("second",))}
EXAMPLES = [Example(a, {"caption": a, "second": b}, (a,)) for a, b in zip(THINGS, SECOND, strict=True)]


class TestContrastive(mmgen.testing.ObjectiveSuite):
    def config(self):
        # the suite's learning rate is too high for CLIP's scale
        return Contrastive(inputs=("caption", "second"), projection_dim=8, logit_scale_init_value=1.0)

    def inputs(self):
        return INPUTS

    def examples(self):
        return EXAMPLES

    def backbone_config(self):
        return Tiny(width=32)


class TestContrastiveLoss(TestContrastive):
    def config(self):
        return ContrastiveLoss(inputs=("caption", "second"), projection_dim=8, logit_scale_init_value=1.0)


def model():
    torch.manual_seed(0)
    objectives = Objectives({"contrast": CONFIG})
    return compose(Tiny(width=32), INPUTS, Masked(max_tokens=9), texts=[*THINGS, *SECOND], objectives=objectives).eval()


def loss_of(built, examples):
    batch = Collator(built, built.inputs, ("contrast",), RngKey(0, "x"))(examples, [0] * len(examples))
    return built(batch).sums["contrast.loss"].item(), built.features(batch)["contrast"]


def test_the_loss_is_the_mean_of_both_directions_without_rows_that_show_the_same():
    built = model()
    doubled = [*EXAMPLES, Example("again", {"caption": "cat", "second": "water"}, ("cat",))]
    assert doubled[0].inputs["caption"] == "cat" and doubled[5].inputs["second"] == "water"
    loss, features = loss_of(built, doubled)
    left, right = features["vectors 0"], features["vectors 1"]
    assert left.norm(dim=1).sub(1).abs().max() < 1e-6 and left.shape == (7, 8)
    expected, scale = 0.0, math.exp(2.6592)
    for row, example in enumerate(doubled):
        for queries, keys in ((left.tolist(), right.tolist()), (right.tolist(), left.tolist())):
            exps = [
                math.exp(scale * sum(a * b for a, b in zip(queries[row], keys[column], strict=True)))
                for column, candidate in enumerate(doubled)
                if column == row or not any(candidate.inputs[n] == example.inputs[n] for n in ("caption", "second"))
            ]
            expected -= (
                math.log(math.exp(scale * sum(a * b for a, b in zip(queries[row], keys[row], strict=True))) / sum(exps))
                / 2
            )
            assert len(exps) == {0: 6, 5: 6, 6: 5}.get(row, 7)
    assert loss == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_a_trained_model_finds_every_partner(tmp_path):
    """Through micro-batches of two; before, at most chance and a little."""
    built = model()
    training = Training(
        batch_size=6,
        micro_batch_size=2,
        epochs=60,
        learning_rate=1e-2,
        weight_decay=0.0,
        precision="fp32",
        length_bucket=1,
    )
    chosen = Step(
        inputs=("caption", "second"), train=("backbone",), objectives=("contrast",), training=training, evaluate=False
    )
    before = loss_of(built, EXAMPLES)[0]
    log = train_step(tmp_path, built, chosen, EXAMPLES)
    after, features = loss_of(built.eval(), EXAMPLES)
    scores = features["vectors 0"] @ features["vectors 1"].T
    assert scores.argmax(0).tolist() == scores.argmax(1).tolist() == [*range(6)]
    assert after < 0.2 * before and log[0]["loss"] == pytest.approx(before / 6, abs=1e-4)


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


def test_predictions_are_the_vectors_that_the_loss_compares():
    built = model()
    features = loss_of(built, EXAMPLES)[1]
    predictions = predict(built, EXAMPLES, "contrast", batch_size=4)
    assert [prediction.id for prediction in predictions] == [example.id for example in EXAMPLES]
    for row, prediction in enumerate(predictions):
        assert [*prediction.value] == ["caption", "second"]
        left, right = prediction.value.values()
        assert left == pytest.approx(features["vectors 0"][row].tolist(), abs=2e-6)
        assert right == pytest.approx(features["vectors 1"][row].tolist(), abs=2e-6)
        assert prediction.score == pytest.approx(sum(a * b for a, b in zip(left, right, strict=True)), abs=1e-5)


def test_only_the_loss_may_stand_beside_writing(tmp_path):
    def resolve(kind):
        (tmp_path / "toy.toml").write_text(
            toys.recipe(
                inputs={"caption": {"type": "text"}, "second": {"type": "text"}},
                objectives={"contrast": {"type": kind, "inputs": ["caption", "second"]}},
                steps={
                    "one": {
                        "inputs": ["caption", "second"],
                        "train": ["backbone"],
                        "objectives": ["generator", "contrast"],
                    }
                },
            )
        )
        return load(tmp_path / "toy.toml", installed())[0]

    with pytest.raises(RecipeError, match="'generator' and 'contrast' both make predictions, but only one objective"):
        resolve("contrastive")
    recipe = resolve("contrastive_loss")
    assert recipe.predicts("one") == ("generator", "text")
    config, built = recipe.objectives["contrast"], model()
    objective = config.build(built.backbone, {})
    assert declaration_problem(config, objective, INPUTS, {}) == ""
    examples = Collator(built, built.inputs, ("contrast",), RngKey(0, "x"))(EXAMPLES, [0] * 6)
    objective.load_state_dict(Contrastive(inputs=CONFIG.inputs).build(built.backbone, {}).state_dict())
    assert objective(built, examples, examples.targets["contrast"]).sums["loss"].isfinite()
