"""Every mistake in a recipe is reported in one line with its place, all mistakes at once, in words of mmgen's own."""

import pytest
from kit.recipes import GOOD, IMAGE, REGISTRY, mistakes
from mmgen_generators import Masked

from mmgen.recipe.load import load


def test_all_mistakes_at_once_each_with_place_and_mend(recipe):
    text = (
        GOOD.replace('type = "masked"', 'type = "masked"\nmax_token = 5')
        .replace('type = "text"', 'type = "texte"')
        .replace("epochs = 3", 'epochs = "3"')
        .replace('start = "first"', 'start = "frist"')
    )
    assert mistakes(recipe(text)) == [
        "my.toml:6: inputs.caption.type: no embedder is called 'texte'; did you mean 'text'?",
        "  installed embedders: grid, picture_network, picture_tokens, regions, text, visualbert_regions, "
        "vlbert_regions",
        "my.toml:9: generator.max_token: no such key; did you mean 'max_tokens'?",
        'my.toml:11: training.epochs: must be a whole number, not "3"',
        "my.toml:18: steps.second.start: unknown step 'frist'; did you mean 'first'?",
    ]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (("epochs = 3", "epochs = 0"), "my.toml:10: training.epochs: must be at least 1, not 0"),
        (("epochs = 3", "num_workers = 100000"), "my.toml:10: training.num_workers: must be at most 256, not 100000"),
        (
            ('type = "scenes"', 'type = "scenes"\ntrain_size = 1000000000000'),
            "my.toml:22: data.train_size: must be at most 1000000, not 1000000000000",
        ),
        (
            ('type = "masked"', 'type = "masked"\n[decoding]\nnum_beams = 1000000000'),
            "my.toml:10: decoding.num_beams: must be at most 1000, not 1000000000",
        ),
        (
            (
                'type = "masked"',
                'type = "masked"\n[decoding]\nlength_penalty = 1e308',
            ),  # a length to this power overflows
            "my.toml:10: decoding.length_penalty: must be at most 10, not 1e+308",
        ),
        (
            ('type = "masked"', 'type = "masked"\n[decoding]\ndo_sample = true\ntemperature = 1e-300'),
            "my.toml:11: decoding.temperature: must be at least 1e-06, not 1e-300",
        ),
        (
            ('type = "bert"', 'type = "bert"\nvocab_size = 1000000000000'),
            "my.toml:5: backbone.vocab_size: must be at most 10000000, not 1000000000000",
        ),
        (("epochs = 3", "epochs = 10000000"), "my.toml:10: training.epochs: must be at most 1000000, not 10000000"),
        (("epochs = 3", f"epochs = {'9' * 5000}"), "my.toml: not valid TOML: a number has too many digits"),
        (
            ("epochs = 3", "epochs = 2026-11-26"),
            'my.toml:10: training.epochs: must be a whole number, not "2026-11-26"',
        ),
        (("epochs = 3", "epoch = 3"), "my.toml:10: training.epoch: no such key; did you mean 'epochs'?"),
        (('name = "toy"', 'nam = "toy"'), "my.toml: name: is missing"),
        (
            ('type = "bert"', 'kind = "bert"'),
            'my.toml:3: backbone: has no type; write  type = "..."  with one of: albert, ',
        ),
        (
            ('train = ["backbone"]', 'train = ["picture"]'),
            "my.toml:13: steps.first.train: unknown input 'picture'; choose from: caption, backbone",
        ),
        (
            ('inputs = ["caption"]', 'inputs = ["captoin"]'),
            "my.toml:12: steps.first.inputs: unknown input 'captoin'; did you mean 'caption'?; choose from: caption",
        ),
        (('type = "scenes"', 'type = "scenes"\nseed = nan'), "my.toml:22: data.seed: "),
        (("[training]", "[training"), "my.toml:9: not valid TOML: "),
        (
            ("num_hidden_layers = 1", "num_hidden_layers = 1.5"),
            "my.toml:23: backbone.num_hidden_layers: must be a whole number, not 1.5",
        ),
        (
            ('profile = "small"', 'profile = "smal"'),
            "my.toml:2: unknown profile 'smal'; did you mean 'small'?; choose from: small, large",
        ),
    ],
)
def test_one_mistake(recipe, change, expected):
    assert mistakes(recipe(GOOD.replace(*change, 1)))[0].startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('profile = "small"', 'profile = ["small"]'), "my.toml:2: unknown profile '['small']'"),
        (
            ("[profiles.large.backbone]\nnum_hidden_layers = 9", "[profiles]\na = 3"),
            "my.toml:22: profiles: must be tables, [profiles.NAME]",
        ),
        (('name = "toy"', 'name = ".."'), "my.toml:1: name: "),
        (("[steps.first]", "[steps.pretrained]"), "my.toml:11: steps.pretrained: 'pretrained' is reserved"),
        (
            ('inputs = ["caption"]', 'inputs = ["caption", "caption"]'),
            "my.toml:12: steps.first.inputs: 'caption' is listed twice; list it once",
        ),
        (
            ('type = "masked"', 'type = "masked"\n[decoding]\ntop_k = 5'),
            "my.toml:10: decoding.top_k: has an effect only with do_sample = true",
        ),
        (
            ('type = "masked"', 'type = "masked"\nmax_tokens = 9\n[decoding]\nmin_new_tokens = 9'),
            "my.toml:11: decoding.min_new_tokens: must be at most 8: generator.max_tokens = 9",
        ),
    ],
)
def test_what_would_be_ignored_or_misread_is_a_mistake(recipe, change, expected):
    assert any(line.startswith(expected) for line in mistakes(recipe(GOOD.replace(*change, 1))))


def test_an_extractor_of_published_files_is_none_of_pictures(recipe):
    text = GOOD.replace("[generator]", f'{IMAGE}extractor = {{ type = "bottom_up_tsv" }}\n[generator]').replace(
        'inputs = ["caption"]', 'inputs = ["image"]', 1
    )
    assert mistakes(recipe(text)) == [
        "my.toml:9: inputs.image.extractor: bottom_up_tsv reads published files, not images; create a feature file "
        "with `mmgen features import --type bottom_up_tsv`, and set inputs.image.features to it"
    ]
    load(recipe(text.replace("extractor =", 'features = "f.h5"\nextractor =')), REGISTRY)


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


def test_inputs_without_any_and_a_value_too_long_to_show(recipe):
    messages = mistakes(recipe(GOOD.replace('[inputs.caption]\ntype = "text"\n', "[inputs]\n")))
    assert "my.toml:5: inputs: must not be empty" in messages
    (messages,) = mistakes(recipe(), sets=(f"training.epochs='{'x' * 100}'",))
    assert messages.endswith(f'not "{"x" * 56}...')


def test_a_generator_refuses_options_before_training(recipe, monkeypatch):
    monkeypatch.setattr(Masked, "refuses", lambda self, decoding: {"num_beams": f"{decoding.num_beams} are too many"})
    text = GOOD.replace('type = "masked"', 'type = "masked"\n[decoding]\nnum_beams = 4')
    assert mistakes(recipe(text)) == ["my.toml:10: decoding.num_beams: 4 are too many"]


def test_a_table_without_a_name_is_no_less_a_mistake_below_a_profile(recipe):
    messages = mistakes(recipe(GOOD + '[steps.""]\n[profiles.small.steps.first]\nstart = "pretrained"\n'))
    name = "a name must start with a letter, a digit or '_', and contain only letters, digits, '_', '-' and '.', not"
    assert messages[0] == f'my.toml:26: steps.: {name} ""'


def test_steps_that_start_from_one_another_go_in_a_circle(recipe):
    text = GOOD.replace(
        'train = ["backbone"]\n[steps.second]', 'train = ["backbone"]\nstart = "second"\n[steps.second]'
    )
    assert (
        "my.toml:14: steps.first.start: the steps start from each other in a cycle: first -> second -> first"
        in mistakes(recipe(text))
    )


@pytest.mark.parametrize(
    ("setting", "expected"),
    [
        ("training.epochs=0", "must be at least 1, not 0"),
        ("training.learning_rate=0", "must be more than 0, not 0"),
        ("training.warmup_ratio=1.5", "must be at most 1, not 1.5"),
        ("backbone.dropout=1", "must be less than 1, not 1"),
        ("training.epochs=2.5", "must be a whole number, not 2.5"),
        ("training.epochs='2'", 'must be a whole number, not "2"'),
        ("training.learning_rate=nan", "must be a finite number, not NaN"),
        ("training.learning_rate=x", 'must be a number, not "x"'),
        ("training.gradient_checkpointing=1", "must be true or false, not 1"),
        ("training.keep=lst", "must be 'last' or 'best', not \"lst\"; did you mean 'last'?"),
        ("name=5", "must be a string in quotation marks, not 5"),
        (
            "name='../x'",
            "a name must start with a letter, a digit or '_', and contain only letters, digits, '_', '-' and '.', not",
        ),
        ("name=''", "must not be empty"),
        ("steps.first.train=[]", "must not be empty"),
        ("steps.first.inputs=caption", 'must be a list, [...], not "caption"'),
        ("inputs.caption.fields=5", "must be a list, [...], not 5"),
        ("data.seed=1979-05-27", 'must be a whole number, not "1979-05-27"'),
        ("decoding.num_beams=0", "must be at least 1, not 0"),
        (
            "decoding.num_return_sequences=3",
            "3 texts need num_beams of at least that number, not 1, or do_sample = true",
        ),
    ],
)
def test_every_message_is_ours(recipe, setting, expected):
    key = setting.partition("=")[0]
    (message,) = mistakes(recipe(), sets=(setting,))
    assert message.startswith(f"--set {setting}: {key}: {expected}")


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
