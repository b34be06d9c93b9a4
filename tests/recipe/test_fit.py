"""What a run would refuse is refused by the check: inputs, objectives, data and decoding that do not fit together."""

import re

import pytest
from kit import toys, views
from kit.recipes import GOOD, IMAGE, REGISTRY, mistakes
from kit.refusals import refusal
from mmgen_encoders import Bert

from mmgen.recipe.load import from_values, load
from mmgen.registry import Registry, Source, collect, installed

STEP = '[steps.third]\ninputs = ["caption"]\ntrain = ["backbone"]\n'
IMAGES = '[steps.third]\ninputs = ["image"]\ntrain = ["backbone"]\n' + IMAGE
UNTRAINED = '[steps.third]\nstart = "second"\ntrain = []\n'
ANSWERS = STEP + 'objectives = ["answers"]\n[objectives.answers]\ntype = "answer_classes"\n'
FEATURES = "29: inputs.image: has no features; set features to a store (`mmgen features import` writes one from "


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        (IMAGES + 'extractor = { type = "bottom_up_tsv" }\n', FEATURES),  # which reads published files
        (IMAGES + 'features = "f.h5"\nextractor = { type = "bottom_up_tsv" }\n', ""),
        (IMAGE + 'extractor = { type = "bottom_up_tsv" }\n', ""),  # no step reads it
        (IMAGE + "box_words = 4.0\nboxes = false\n", "28: inputs.image.box_words: needs boxes = true"),
        (
            STEP.replace("caption", "more") + '[inputs.more]\ntype = "picture_tokens"\n',
            "30: inputs.more.type: 'picture_tokens' needs an encoder that sees, but the backbone 'bert' sees ",
        ),
        (
            STEP + 'objectives = ["a"]\n[objectives.a]\ntype = "region_choice"\ninit_from = "b"\n',
            "29: steps.third.objectives: 'a': init_from = \"b\" names no objective with a hidden layer to copy",
        ),
        ('[metrics.m]\ntype = "vqa_accuracy"\n', "26: metrics.m: scores no step: it needs predictions of the kind "),
        (ANSWERS, "29: steps.third.objectives: 'answers' needs a [MASK] after 'question'; give the step that input "),
        (ANSWERS, "29: steps.third.objectives: 'answers' needs examples with the label 'answers', but data 'scenes' "),
        (
            ANSWERS.replace('["answers"]', '["generator", "answers"]'),
            "29: steps.third.objectives: 'generator' and 'answers' make predictions, but only one objective per step ",
        ),
        (
            STEP + 'objectives = ["a", "b"]\n[objectives.a]\ntype = "masked_words"\n[objectives.b]\n'
            'type = "masked_words"\n',
            "29: steps.third.objectives: 'a' and 'b' both mask the input 'caption', but only one objective per step ",
        ),
        (
            STEP + 'objectives = ["a"]\n[objectives.a]\ntype = "masked_words"\n',
            "26: steps.third.evaluate: no predictions of 'a' to score; set evaluate = false",
        ),
        (UNTRAINED + "[steps.third.training]\nepochs = 7\n", "29: steps.third.training: has no effect, because the "),
        (UNTRAINED + "evaluate = false\n", "29: steps.third.evaluate: a step that trains nothing must be evaluated; "),
        (UNTRAINED + "decoding = { num_beam = 5 }\n", "29: steps.third.decoding.num_beam: no such key; did you mean "),
        (
            UNTRAINED + 'inputs = ["caption", "more"]\n[inputs.more]\ntype = "text"\n',
            "29: steps.third.inputs: 'more' is not in the inputs of step 'second', whose weights this step has; ",
        ),
        (UNTRAINED.replace("second", "weights:x"), "28: steps.third.train: must not be empty, unless `start` names "),
    ],
)
def test_what_a_step_would_refuse_is_refused_before(recipe, more, expected):
    if expected:
        lines = mistakes(recipe(GOOD + more))
        assert any(line.startswith(f"my.toml:{expected}") for line in lines), lines
    else:
        load(recipe(GOOD + more), REGISTRY)


def test_a_backbone_that_cannot_recompute(recipe, monkeypatch):
    said = "the backbone 'bert' cannot recompute its layers; remove this key"
    monkeypatch.setattr(Bert, "supports_gradient_checkpointing", False)
    for place, old in (("10: training", "epochs = 3"), ("19: steps.second.training", "learning_rate = 1e-4")):
        path = recipe(GOOD.replace(old, "gradient_checkpointing = true"))
        assert mistakes(path) == [f"my.toml:{place}.gradient_checkpointing: {said}"]
    monkeypatch.setattr(Bert, "supports_gradient_checkpointing", True)
    load(path, REGISTRY)


OVER_BATCH = '[objectives.views]\ntype = "views"\n[steps.first]\nobjectives = ["generator", "views"]\n'
ALL_PAIRS = "since 'views' of step 'first' compares all pairs of an update; "


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            "[training]",
            "[training]\nbatch_size = 16\nmicro_batch_size = 4",
            f"11: training.micro_batch_size: must be at least batch_size (16), not 4, {ALL_PAIRS}raise it, or lower "
            "batch_size",
        ),
        (
            "[steps.first]",
            '[steps.first]\ndata = [{ type = "scenes" }, { type = "scenes", seed = 2 }]',
            f"14: steps.first.data: must be one data set, {ALL_PAIRS}use a step for each data set",
        ),
    ],
)
def test_what_would_split_an_update_of_a_loss_over_the_batch(recipe, before, after, expected):
    registry = Registry((*installed().parts, *collect([(Source("views", "mmgen-views", "1.0"), views)]).parts), ())
    path = recipe(GOOD.replace("[steps.first]\n", OVER_BATCH).replace(before, after))
    assert refusal(load, path, registry) == f"{path}:{expected}"


def test_prompts_need_a_generator_that_reads_them(recipe):
    text = toys.recipe(
        generator={"type": "any_order"}, data={"type": "table", "folder": ".", "columns": {"prompt": "level"}}
    )
    lines = mistakes(recipe(re.sub("(train|val|test)_size = .*\n", "", text)))
    assert [line.split(": ", 2)[1:] for line in lines] == [
        [
            f"steps.{step}.objectives",
            "the generator 'any_order' does not read the prompts of data 'table'; use a generator that does, such as "
            "masked, or data without prompts",
        ]
        for step in ("first", "second")
    ]


def test_a_step_that_trains_nothing_is_as_the_step_that_it_starts_from(recipe):
    fourth = "[steps.fourth]\nstart = 'third'\ntrain = []\n[decoding]\nnum_beams = 2\nnum_return_sequences = 2"
    loaded, _ = load(recipe(f"{GOOD}{UNTRAINED}decoding = {{ num_beams = 4 }}\n{fourth}"), REGISTRY)
    second, third, fourth = (loaded.steps[name] for name in ("second", "third", "fourth"))
    assert (third.inputs, third.objectives) == (second.inputs, second.objectives) == (fourth.inputs, fourth.objectives)
    assert loaded.trained_by("third") == loaded.trained_by("fourth") == "second" == loaded.trained_by("second")
    assert (third.decoding.num_beams, third.decoding.texts) == (4, 2) and fourth.decoding is None
    assert loaded.decoding_of("fourth") == loaded.decoding and loaded.decoding_as("third").decoding == third.decoding
    assert from_values(loaded.model_dump(mode="json"), REGISTRY, "recipe.json") == loaded
