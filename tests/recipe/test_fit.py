"""Objectives of a step that a run would refuse are refused by the check."""

import re

import pytest
from kit import toys, views
from kit.recipes import GOOD, IMAGE, REGISTRY, mistakes

from mmgen.errors import RecipeError
from mmgen.recipe.load import from_json, load
from mmgen.registry import Registry, Source, collect, installed


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


def test_a_backbone_that_cannot_recompute(tmp_path):
    key, said = "gradient_checkpointing", "the backbone 'albert' cannot recompute its layers; remove this key"
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


OVER_BATCH = """\
[objectives.views]
type = "views"
[steps.first]
objectives = ["generator", "views"]
"""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, ""),
        ({"[training]": "[training]\nbatch_size = 16\nmicro_batch_size = 16"}, ""),
        (
            {"[training]": "[training]\nbatch_size = 16\nmicro_batch_size = 4"},
            "11: training.micro_batch_size: must be at least batch_size (16), not 4, since 'views' of step 'first' "
            "compares all pairs of an update; raise it, or lower batch_size",
        ),
        (
            {"[data]": "[steps.first.training]\nmicro_batch_size = 4\n[data]"},
            "24: steps.first.training.micro_batch_size: must be at least batch_size (128), not 4, since 'views' of "
            "step 'first' compares all pairs of an update; raise it, or lower batch_size",
        ),
        (
            {"[steps.first]": '[steps.first]\ndata = [{ type = "scenes" }, { type = "scenes", seed = 2 }]'},
            "14: steps.first.data: must be one data set, since 'views' compares all pairs of an update; use a step for "
            "each data set",
        ),
    ],
)
def test_what_would_split_an_update_of_a_loss_over_the_batch(recipe, changes, expected):
    registry = Registry((*installed().parts, *collect([(Source("views", "mmgen-views", "1.0"), views)]).parts), ())
    text = GOOD.replace("[steps.first]\n", OVER_BATCH)
    for old, new in changes.items():
        text = text.replace(old, new)
    path = recipe(text)
    if not expected:
        load(path, registry)
        return
    with pytest.raises(RecipeError) as error:
        load(path, registry)
    assert str(error.value) == f"{path}:{expected}"


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
        generator={"type": "any_order"}, data={"type": "table", "folder": ".", "columns": {"prompt": "level"}}
    )
    (tmp_path / "toy.toml").write_text(re.sub("(train|val|test)_size = .*\n", "", text))
    message = (
        "the generator 'any_order' does not read the prompts of data 'table'; use a generator that does, such as "
        "masked, or data without prompts"
    )
    lines = toys.mmgen_here(tmp_path, "check", "toy.toml").stderr.splitlines()
    assert [line.removeprefix("error: ").split(": ", 2)[1:] for line in lines] == [
        [f"steps.{step}.objectives", message] for step in ("first", "second")
    ]


UNTRAINED = """
[steps.third]
start = "second"
train = []
"""


def test_a_step_that_trains_nothing_is_as_the_step_that_it_starts_from(recipe):
    fourth = "[steps.fourth]\nstart = 'third'\ntrain = []\n[decoding]\nnum_beams = 2\nnum_return_sequences = 2"
    text = f"{GOOD}{UNTRAINED}decoding = {{ num_beams = 4 }}\n{fourth}"
    loaded, _ = load(recipe(text), REGISTRY)
    second, third, fourth = (loaded.steps[name] for name in ("second", "third", "fourth"))
    assert (third.inputs, third.objectives, third.training) == (second.inputs, second.objectives, second.training)
    assert loaded.trained_by("third") == loaded.trained_by("fourth") == "second" == loaded.trained_by("second")
    assert (third.decoding.num_beams, third.decoding.texts) == (4, 2) and fourth.decoding is None
    assert loaded.decoding_of("fourth") == loaded.decoding and loaded.decoding_as("third").decoding == third.decoding
    assert from_json(loaded.model_dump_json(), REGISTRY, "recipe.json") == loaded


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (
            "[steps.third.training]\nepochs = 7",
            "31: steps.third.training.epochs: has no effect, because the step trains nothing; ",
        ),
        (
            "evaluate = false",
            "30: steps.third.evaluate: a step that trains nothing must be evaluated; set evaluate = true",
        ),
        ("decoding = 5", "30: steps.third.decoding: must be a table"),
        ("decoding = { num_beam = 5 }", "30: steps.third.decoding.num_beam: no such key; did you mean 'num_beams'?"),
        (
            "decoding = { difference = 0.5 }",
            "30: steps.third.decoding.difference: has an effect only with candidates",
        ),
        (
            'objectives = ["generator", "words"]\n[objectives.words]\ntype = "masked_words"',
            "30: steps.third.objectives: 'words' is not in the objectives of step 'second', whose weights this ",
        ),
        (
            'inputs = ["caption", "more"]\n[inputs.more]\ntype = "text"',
            "30: steps.third.inputs: 'more' is not in the inputs of step 'second', whose weights this ",
        ),
    ],
)
def test_a_step_that_trains_nothing_has_no_keys_of_training_and_no_other_parts(recipe, more, expected):
    (line,) = mistakes(recipe(GOOD + UNTRAINED + more))
    assert line.startswith(f"my.toml:{expected}")


@pytest.mark.parametrize(
    ("start", "expected"),
    [
        ("", "29: steps.third.train: must not be empty, unless `start` names the step whose weights this step has"),
        ('start = "weights:x"', "29: steps.third.train: must not be empty, unless `start` names"),
        ('start = "secnd"', "28: steps.third.start: unknown step 'secnd'; did you mean 'second'?"),
        ('start = "third"', "28: steps.third.start: the steps start from each other in a cycle: third -> third"),
    ],
)
def test_a_step_that_trains_nothing_starts_from_another(recipe, start, expected):
    assert mistakes(recipe(GOOD + UNTRAINED.replace('start = "second"', start)))[0].startswith(f"my.toml:{expected}")
