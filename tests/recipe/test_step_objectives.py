"""Objectives of a step that a run would refuse are refused by the check."""

import pytest
from kit.recipes import GOOD, IMAGE, REGISTRY, mistakes

from mmgen.recipe.load import load


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (
            ("num_hidden_layers = 1", "hidden_size = 32\nnum_attention_heads = 3"),
            "my.toml:26: backbone.num_attention_heads: hidden_size (32) must be a multiple of num_attention_heads (3)",
        ),
        (
            ("num_hidden_layers = 1", 'weights = "x"\nhidden_size = 32\nnum_attention_heads = 3'),
            None,
        ),  # they count without weights alone
        (
            ('type = "scenes"', 'type = "scenes"\ntrain_split = "x"'),
            "my.toml:24: data.train_split: drawn scenes have no split 'x'; there",
        ),
        (
            ('inputs = ["caption"]', 'inputs = ["image"]'),
            'my.toml:7: inputs.image: has no features; set features = "FILE", or add '
            "[inputs.image.extractor] to compute them",
        ),
        (
            ('type = "regions"', 'type = "regions"\nextractor = { type = "bottom_up_tsv" }'),
            None,  # no step reads it
        ),
        (
            ("[inputs.image]", '[inputs.backbone]\ntype = "text"\n[inputs.image]'),
            "my.toml:7: inputs.backbone: 'backbone' is reserved",
        ),
    ],
)
def test_what_a_step_would_refuse_is_refused_before(recipe, change, expected):
    text = GOOD.replace("[generator]", f"{IMAGE}[generator]").replace(*change, 1)
    if expected is None:
        load(recipe(text), REGISTRY)
    else:
        assert mistakes(recipe(text))[0].startswith(expected)
