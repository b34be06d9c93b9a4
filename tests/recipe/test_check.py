"""Every mistake in a recipe is reported in one line with its place, all mistakes at once, in words of mmgen's own."""

import pytest
from kit.recipes import GOOD, IMAGE, REGISTRY, mistakes
from mmgen_generators import Masked


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("epochs = 3", f"epochs = {'9' * 5000}", " cannot be read: nested too deeply, or a number has too many digits"),
        ('type = "bert"', 'kind = "bert"', '3: backbone.type: is missing; write  type = "..."  with one of: bert, '),
        ("[training]", "[training", "9: not valid TOML: expected ']' at the end of a table declaration"),
        (
            'profile = "small"',
            'profile = "smal"',
            "2: profile: unknown name 'smal'; did you mean 'small'?; choose from",
        ),
        (
            "[profiles.large.backbone]\nnum_hidden_layers = 9",
            "[profiles]\na = 3",
            "22: profiles: must be tables, [profiles.NAME]",
        ),
        ('name = "toy"', 'name = ".."', "1: name: a name must start with a letter, a digit or '_', and contain only"),
        ('train = ["backbone"]', 'train = ["picture"]', "13: steps.first.train: unknown name 'picture'; choose from: "),
        (
            'inputs = ["caption"]',
            'inputs = ["caption", "caption"]',
            "12: steps.first.inputs: 'caption' is listed twice",
        ),
        ("[steps.first]", "[steps.pretrained]", "11: steps.pretrained: 'pretrained' is reserved for the steps; choose"),
        (
            'train = ["backbone"]\n[steps.second]',
            'train = ["backbone"]\nstart = "second"\n[steps.second]',
            "14: steps.first.start: the steps start from each other in a cycle: second -> first -> second",
        ),
        (
            'type = "masked"',
            'type = "masked"\n[decoding]\ntop_k = 5',
            "10: decoding.top_k: has an effect only with do_sample = true",
        ),
        (
            'type = "masked"',
            'type = "any_order"\n[decoding]\nnum_beams = 5',
            "10: decoding.num_beams: no such key; the keys are: steps, order, ",
        ),
        ('[generator]\ntype = "masked"\n', "", " generator: is missing, and step 'first' needs it: add a table "),
        ("epochs = 3", "betas = [0.9]", "10: training.betas.1: is missing"),
        ("epochs = 3", "betas = [0.9, 0.9, 0.9]", "10: training.betas: must have at most 2 entries, not 3"),
        (
            "num_hidden_layers = 1",
            "hidden_size = 32\nnum_attention_heads = 3",
            "24: backbone.num_attention_heads: hidden_size (32) must be a multiple of num_attention_heads (3)",
        ),
        (
            'type = "masked"',
            'type = "causal"\n[objectives.generator]\ntype = "masked_words"',
            "9: objectives.generator: ",
        ),
    ],
)
def test_one_mistake(recipe, before, after, expected):
    lines = mistakes(recipe(GOOD.replace(before, after, 1)))
    assert any(line.startswith(f"my.toml:{expected}") for line in lines), lines


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.learning_rate=0", "must be more than 0, not 0"),
        ("training.learning_rate=nan", "must be a finite number, not NaN"),
        ("training.keep=lst", "must be 'last' or 'best', not \"lst\"; did you mean 'last'?"),
        ("name=5", "must be a string in quotation marks, not 5"),
        ("steps.first.inputs=caption", 'must be a list, [...], not "caption"'),
        ("steps.first=3", "must be a table, not 3"),
        ("decoding.num_return_sequences=3", "3 texts need do_sample = true, or num_beams"),
        (f"training.epochs='{'x' * 100}'", f'must be a whole number, not "{"x" * 56}...'),
    ],
)
def test_every_message_is_ours_and_names_the_setting(recipe, setting, expected):
    (message,) = mistakes(recipe(), sets=(setting,))
    assert message.startswith(f"--set {setting}: {setting.partition('=')[0]}: {expected}")


def test_a_part_and_the_part_inside_it_are_checked_at_once(recipe):
    extractor = 'extractor = { type = "roi", batch_size = 0, detector = { type = "detecter" } }\n'
    text = GOOD.replace("[generator]", f'{IMAGE}max_regions = "5"\nbogus = 1\n{extractor}[generator]')
    assert mistakes(recipe(text)) == [
        'my.toml:9: inputs.image.max_regions: must be a whole number, not "5"',
        "my.toml:10: inputs.image.bogus: no such key; did you mean 'boxes'?",
        "my.toml:11: inputs.image.extractor.batch_size: must be at least 1, not 0",
        "my.toml:11: inputs.image.extractor.detector.type: no extractor is called 'detecter'; did you mean 'detector'?",
        f"  installed extractors: {', '.join(REGISTRY.by_name('extractor'))}",
    ]


def test_a_generator_refuses_options_before_training(recipe, monkeypatch):
    monkeypatch.setattr(Masked, "refuses", lambda self, decoding: {"num_beams": f"{decoding.num_beams} are too many"})
    text = GOOD.replace('type = "masked"', 'type = "masked"\n[decoding]\nnum_beams = 4')
    assert mistakes(recipe(text)) == ["my.toml:10: decoding.num_beams: 4 are too many"]


FEATURES = "inputs.image: has no features; set features to a store (`mmgen features import` writes one from published "
THIRD = '[steps.third]\ninputs = ["image"]\ntrain = ["backbone"]\nevaluate = "own"\n' + IMAGE
OWN = 'steps.third.evaluate: "own" needs a data set of the step; add '
SCORED = (
    '[metrics.m]\ntype = "captioneval"\n[steps.third]\ninputs = ["caption"]\ntrain = ["backbone"]\nevaluate = false\n'
)


@pytest.mark.parametrize(
    ("changes", "more", "expected"),
    [
        (
            {'inputs = ["caption"]\ntrain = ["backbone"]': 'inputs = ["a", "b"]\ntrain = ["c"]'},
            "",
            ["12: steps.first.inputs: unknown name 'a'; ", "12: steps.first.inputs: unknown name 'b'; ", "13: steps."],
        ),
        (  # what a config says about its keys together, and what does not fit
            {"epochs = 3": 'momentum = 0.9\nlr_scheduler = "steps"\nbatch_size = 0'},
            THIRD,
            [
                '10: training.momentum: needs optimizer = "sgd", not "adamw"',
                "11: training.lr_scheduler: steps need lr_milestones",
                "12: training.batch_size: must be at least 1, not 0",
                f"31: {OWN}",
                f"32: {FEATURES}",
            ],
        ),
        (  # the parts on which most depends
            {'type = "bert"': 'type = "bret"', 'type = "scenes"': 'type = "scene"'},
            THIRD,
            [
                "4: backbone.type: no backbone is called 'bret'",
                "  installed backbones",
                "21: data.type: no dataset is called 'scene'",
                "  installed datasets",
                f"29: {OWN}",
                f"30: {FEATURES}",
            ],
        ),
        # what only follows from a mistake is not said
        ({'train = ["backbone"]': "train = []\nstart = 5"}, "", ["14: steps.first.start: must be a string"]),
        ({"epochs = 3": 'optimizer = "sdg"\nmomentum = 0.9'}, "", ["10: training.optimizer: must be 'adamw' or "]),
        ({'start = "first"': 'start = "frist"', "[data]": 'start = "x"\n[data]'}, SCORED, ["17: steps.", "20: steps."]),
        ({'"toy"\n': '"toy"\ndefault_step = "second"\n', 'start = "first"': 'start = "frist"'}, "", ["18: steps."]),
    ],
)
def test_a_mistake_hides_no_other(recipe, changes, more, expected):
    text = GOOD + more
    for before, after in changes.items():
        text = text.replace(before, after, 1)
    lines = [line.removeprefix("my.toml:") for line in mistakes(recipe(text))]
    assert len(lines) == len(expected) and all(map(str.startswith, lines, expected)), lines
