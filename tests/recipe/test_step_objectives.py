"""Objectives of a step that a run would refuse are refused by the check."""

import re

import pytest
from kit import toys
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
            "my.toml:24: data.train_split: drawn scenes have no split 'x'; choose from: ",
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


@pytest.mark.parametrize(("key", "verb"), [("gradient_checkpointing", "recompute"), ("torch_compile", "compile")])
def test_a_backbone_that_cannot_recompute_or_compile(tmp_path, key, verb):
    said = f"the backbone 'albert' cannot {verb} its layers; remove this key"
    for changes, path in (
        ({"training": {key: True}}, f"training.{key}"),
        (
            {"steps": {"first": {"inputs": ["caption"], "train": ["backbone"], "training": {key: True}}}},
            f"steps.first.training.{key}",
        ),
    ):
        text = toys.recipe(backbone={"type": "albert"}, **changes)
        (tmp_path / "toy.toml").write_text(text)
        number = text.splitlines().index(f"{key} = true") + 1
        assert toys.mmgen_here(tmp_path, "check", "toy.toml").stderr == f"error: toy.toml:{number}: {path}: {said}\n"
    (tmp_path / "toy.toml").write_text(toys.recipe(training={key: True}))
    assert toys.mmgen_here(tmp_path, "check", "toy.toml").returncode == 0


def test_compiled_layers_cannot_be_sharded(tmp_path):
    (tmp_path / "toy.toml").write_text(toys.recipe(training={"torch_compile": True, "shard": True}))
    done = toys.mmgen_here(tmp_path, "check", "toy.toml")
    assert "training.shard: cannot be used with torch_compile = true; set only one of the two\n" in done.stderr


def test_the_labels_of_a_data_set_with_a_mistake_are_unknown(recipe):
    answers = toys.recipe(
        inputs={"question": {"type": "text", "append_mask": True}},
        objectives={"answers": {"type": "answer_classes"}},
        steps={"answers": {"inputs": ["question"], "train": ["backbone"], "objectives": ["answers"]}},
        data={"type": "scene_answers"},
        metrics={"answers": {"type": "vqa_accuracy"}},
    )
    assert mistakes(recipe(answers), sets=("data.nokey=1",)) == ["--set data.nokey=1: data.nokey: no such key"]
    (step_data,) = mistakes(
        recipe(answers), sets=('steps.answers.data={type="scene_answers", nokey=1}', 'data.type="scenes"')
    )
    assert "nokey: no such key" in step_data


def test_prompts_need_a_generator_that_reads_them(tmp_path):
    text = toys.recipe(
        generator={"type": "any_order"}, data={"type": "csv", "folder": ".", "columns": {"prompt": "level"}}
    )
    (tmp_path / "toy.toml").write_text(re.sub("(train|val|test)_size = .*\n", "", text))
    message = (
        "the generator 'any_order' does not read the prompts of data 'csv'; use a generator that does, such as masked, "
        "or data without prompts"
    )
    lines = toys.mmgen_here(tmp_path, "check", "toy.toml").stderr.splitlines()
    assert [line.removeprefix("error: ").split(": ", 2)[1:] for line in lines] == [
        [f"steps.{step}.objectives", message] for step in ("first", "second")
    ]
