"""The table [training]: contradicting keys are refused."""

import pytest
from kit.recipes import GOOD, REGISTRY, mistakes

from mmgen.recipe.load import load


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "momentum = 0.9",
            'my.toml:10: training.momentum: needs optimizer = "sgd", but optimizer is "adamw"',
        ),
        (
            'optimizer = "sgd"\neps = 1e-6',
            'my.toml:11: training.eps: needs optimizer = "adamw", but optimizer is "sgd"',
        ),
        (
            'optimizer = "sgd"\nbias_correction = false',
            'my.toml:11: training.bias_correction: needs optimizer = "adamw", but optimizer is "sgd"',
        ),
        (
            "lr_milestones = [2]",
            'my.toml:10: training.lr_milestones: needs lr_scheduler = "steps", but lr_scheduler is "linear"',
        ),
        (
            "lr_gamma = 0.5",
            'my.toml:10: training.lr_gamma: needs lr_scheduler = "steps", but lr_scheduler is "linear"',
        ),
        (
            'lr_scheduler = "steps"\nlr_milestones = [2, 2]',
            "my.toml:11: training.lr_milestones: the epochs must increase",
        ),
        (
            'lr_scheduler = "steps"',
            'my.toml:9: training.lr_milestones: lr_scheduler = "steps" needs epochs after which the rate falls, '
            "such as [14, 18]",
        ),
        ("betas = [0.9, 1.0]", "my.toml:10: training.betas.1: must be less than 1, not 1.0"),
    ],
)
def test_keys_of_training_that_contradict_each_other(recipe, keys, expected):
    assert mistakes(recipe(GOOD.replace("epochs = 3", keys))) == [expected]


def test_the_papers_training_settings_can_be_expressed(recipe):
    """VL-BERT's for VCR, by SGD in steps, and VisualBERT's, by BERT's own Adam, with a frozen pooler."""
    vcr = """optimizer = "sgd"
momentum = 0.9
learning_rate = 4.48e-3
weight_decay = 1e-4
max_grad_norm = 10
epochs = 20
warmup_updates = 1000
lr_scheduler = "steps"
lr_milestones = [14, 18]"""
    visualbert = """learning_rate = 5e-5
eps = 1e-6
bias_correction = false
clip = "each"
freeze = ["*.pooler.*"]"""
    text = GOOD.replace("epochs = 3", vcr).replace("learning_rate = 1e-4", "optimizer = 'adamw'\nmomentum = 0")
    first, second = (step.training for step in load(recipe(text), REGISTRY)[0].steps.values())
    assert (first.optimizer, first.momentum, first.warmup_updates) == ("sgd", 0.9, 1000)
    assert (first.lr_scheduler, first.lr_milestones, first.lr_gamma) == ("steps", (14, 18), 0.1)
    assert (second.optimizer, second.momentum, second.lr_milestones) == ("adamw", 0, (14, 18))
    training = load(recipe(GOOD.replace("epochs = 3", visualbert)), REGISTRY)[0].training
    assert (training.eps, training.bias_correction, training.clip, training.freeze) == (
        1e-6,
        False,
        "each",
        ("*.pooler.*",),
    )
