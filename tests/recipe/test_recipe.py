"""Recipes: layers, origins, and every mistake on one line with its place, all of them at once."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kit.toys import mmgen_here
from mmgen_masked import Masked

from mmgen.configs import Config
from mmgen.errors import RecipeError
from mmgen.recipe.load import from_json, load
from mmgen.recipe.tables import Recipe
from mmgen.recipe.toml_lines import lines
from mmgen.registry import installed

REGISTRY = installed()
GOOD = """\
name = "toy"
profile = "small"
[backbone]
type = "bert"
[inputs.caption]
type = "text"
[generator]
type = "masked"
[training]
epochs = 3
[steps.first]
inputs = ["caption"]
train = ["backbone"]
[steps.second]
inputs = ["caption"]
train = ["backbone"]
start = "first"
[steps.second.training]
learning_rate = 1e-4
[data]
type = "scenes"
[profiles.small.backbone]
num_hidden_layers = 1
[profiles.large.backbone]
num_hidden_layers = 9
"""


@pytest.fixture
def recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(text: str = GOOD, name: str = "my.toml") -> Path:
        Path(name).write_text(text)
        return Path(name)

    return write


def mistakes(path: Path, **options) -> list[str]:
    with pytest.raises(RecipeError) as caught:
        load(path, REGISTRY, **options)
    return str(caught.value).splitlines()


def test_layers_later_wins_and_origins_are_known(recipe):
    recipe('extends = "parent.toml"\n[training]\nbatch_size = 7\n', "child.toml")
    recipe(GOOD, "parent.toml")
    loaded, layers = load(Path("child.toml"), REGISTRY, sets=("training.epochs=8",))
    assert (loaded.training.epochs, loaded.training.batch_size, loaded.backbone.num_hidden_layers, loaded.profile) == (
        8,
        7,
        1,
        "small",
    )
    assert layers.origins["training", "epochs"] == "--set training.epochs=8"
    assert layers.origins["training", "batch_size"] == "child.toml:3"
    assert layers.origins["backbone", "num_hidden_layers"] == "parent.toml:23"
    assert load(Path("child.toml"), REGISTRY, "large")[0].backbone.num_hidden_layers == 9


def test_every_table_is_validated_once(recipe, monkeypatch):
    """But for a part that holds another: first its own keys, then it with what it holds."""
    validated = []

    def counting(name):
        validate = getattr(Config, name).__func__

        def counted(cls, *values, **options):
            validated.append(cls.__name__)
            return validate(cls, *values, **options)

        return classmethod(counted)

    path = recipe(GOOD)
    for name in ("model_validate", "model_validate_json"):
        monkeypatch.setattr(Config, name, counting(name))
    monkeypatch.setattr(Recipe, "__init__", lambda *_, **__: pytest.fail("made a second time"))
    load(path, installed())
    for name in ("Recipe", "Masked", "Text", "SequenceConfig", "Decoding"):
        assert validated.count(name) == 1, name


def test_a_step_has_the_recipes_training_with_its_own_on_top(recipe):
    loaded, _ = load(recipe(), REGISTRY)
    assert loaded.steps["first"].training.learning_rate == 2e-5
    assert loaded.steps["second"].training.learning_rate == 1e-4
    assert loaded.steps["second"].training.epochs == 3


def test_a_table_whose_type_changes_starts_afresh(recipe):
    text = (
        GOOD.replace('type = "scenes"', 'type = "scenes"\ntrain_size = 5')
        + '[profiles.small.data]\ntype = "vqa"\nfolder = "x"\n'
    )
    loaded, _ = load(recipe(text), REGISTRY)
    assert loaded.data.type == "vqa"


def test_all_mistakes_at_once_each_with_place_and_mend(recipe):
    text = (
        GOOD.replace('type = "masked"', 'type = "masked"\nmax_token = 5')
        .replace('type = "text"', 'type = "texte"')
        .replace("epochs = 3", 'epochs = "3"')
        .replace('start = "first"', 'start = "frist"')
    )
    assert mistakes(recipe(text)) == [
        "my.toml:6: inputs.caption.type: no embedder is called 'texte'; did you mean 'text'?",
        "  installed embedders: grid, regions, text, visualbert_regions, vlbert_regions",
        "my.toml:9: generator.max_token: no such key; did you mean 'max_tokens'?",
        'my.toml:11: training.epochs: must be a whole number, not "3"',
        "my.toml:18: steps.second.start: there is no step 'frist'; did you mean 'first'?",
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
            ('type = "masked"', 'type = "masked"\n[decoding]\nnum_beam_groups = 1000000000'),
            "my.toml:10: decoding.num_beam_groups: must be at most 1000, not 1000000000",
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
        (("epochs = 3", "epoch = 3"), "my.toml:10: training.epoch: no such key; did you mean 'epochs'?"),
        (('name = "toy"', 'nam = "toy"'), "my.toml: name: is missing"),
        (
            ('type = "bert"', 'kind = "bert"'),
            'my.toml:3: backbone: has no type; write  type = "..."  with one of: albert, ',
        ),
        (
            ('train = ["backbone"]', 'train = ["picture"]'),
            "my.toml:13: steps.first.train: there is no input 'picture'; there are: caption, backbone",
        ),
        (
            ('inputs = ["caption"]', 'inputs = ["captoin"]'),
            "my.toml:12: steps.first.inputs: there is no input 'captoin'; did you mean 'caption'?; there are: caption",
        ),
        (('type = "scenes"', 'type = "scenes"\nseed = nan'), "my.toml:22: data.seed: "),
        (("[training]", "[training"), "my.toml:9: not valid TOML: "),
        (
            ("num_hidden_layers = 1", "num_hidden_layers = 1.5"),
            "my.toml:23: backbone.num_hidden_layers: must be a whole number, not 1.5",
        ),
        (
            ('profile = "small"', 'profile = "smal"'),
            "my.toml:2: there is no profile 'smal'; did you mean 'small'?; there are: small, large",
        ),
    ],
)
def test_one_mistake(recipe, change, expected):
    assert mistakes(recipe(GOOD.replace(*change, 1)))[0].startswith(expected)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (('profile = "small"', 'profile = ["small"]'), "my.toml:2: there is no profile '['small']'"),
        (
            ("[profiles.large.backbone]\nnum_hidden_layers = 9", "[profiles]\na = 3"),
            "my.toml:22: profiles: must be tables, [profiles.NAME]",
        ),
        (('name = "toy"', 'name = ".."'), "my.toml:1: name: "),
        (("[steps.first]", "[steps.pretrained]"), "my.toml:11: steps.pretrained: 'pretrained' is reserved"),
        (
            ('inputs = ["caption"]', 'inputs = ["caption", "caption"]'),
            "my.toml:12: steps.first.inputs: an input is listed twice; list each input once",
        ),
        (
            ('type = "masked"', 'type = "masked"\n[decoding]\ntop_k = 5'),
            "my.toml:10: decoding.top_k: has an effect only with do_sample = true",
        ),
        (
            (
                'type = "masked"',
                'type = "masked"\n[decoding]\nnum_beams = 4\nnum_beam_groups = 2\nno_repeat_ngram_size = 2',
            ),
            "my.toml:12: decoding.no_repeat_ngram_size: not supported by diverse",
        ),
        (
            ('type = "masked"', 'type = "masked"\nmax_tokens = 9\n[decoding]\nmin_new_tokens = 9'),
            "my.toml:11: decoding.min_new_tokens: must be at most 8: generator.max_tokens = 9",
        ),
    ],
)
def test_what_would_be_ignored_or_misread_is_a_mistake(recipe, change, expected):
    assert any(line.startswith(expected) for line in mistakes(recipe(GOOD.replace(*change, 1))))


IMAGE = '[inputs.image]\ntype = "regions"\n'


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


def test_an_extractor_of_published_files_is_none_of_pictures(recipe):
    text = GOOD.replace("[generator]", f'{IMAGE}extractor = {{ type = "bottom_up_tsv" }}\n[generator]').replace(
        'inputs = ["caption"]', 'inputs = ["image"]', 1
    )
    assert mistakes(recipe(text)) == [
        "my.toml:9: inputs.image.extractor: bottom_up_tsv reads published files, not images; create a feature file "
        "with `mmgen features import --type bottom_up_tsv`, and set inputs.image.features to it"
    ]
    load(recipe(text.replace("extractor =", 'features = "f.h5"\nextractor =')), REGISTRY)


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
        ("training.shard=1", "must be true or false, not 1"),
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


def test_values_beside_a_part_inside_are_checked_as_strictly(recipe):
    text = GOOD.replace("[generator]", f'{IMAGE}max_regions = "5"\nextractor = {{ type = "roi" }}\n[generator]')
    assert mistakes(recipe(text)) == ['my.toml:9: inputs.image.max_regions: must be a whole number, not "5"']


def test_inputs_without_any_and_a_value_too_long_to_show(recipe):
    messages = mistakes(recipe(GOOD.replace('[inputs.caption]\ntype = "text"\n', "[inputs]\n")))
    assert "my.toml:5: inputs: must not be empty" in messages
    (messages,) = mistakes(recipe(), sets=(f"training.epochs='{'x' * 100}'",))
    assert messages.endswith(f'not "{"x" * 56}...')


@pytest.mark.parametrize(
    ("encoding", "expected"),
    [
        ("utf-8-sig", None),
        ("utf-16", "my.toml:1: the file is UTF-16; save it as UTF-8"),
        ("latin-1", "my.toml:2: the file"),
    ],
)
def test_recipes_of_other_editors(recipe, encoding, expected):
    text = f'# a\ndescription = "é"\n{GOOD}'
    recipe().write_text(text, encoding=encoding)
    if expected is None:
        assert load(Path("my.toml"), REGISTRY)[0].description == "é"
    else:
        assert mistakes(Path("my.toml"))[0].startswith(expected)


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (
            "warmup_ratio = 0.2\nwarmup_updates = 50",
            "my.toml:10: training.warmup_ratio: warmup_updates is also set (50); set only one of the two",
        ),
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


def test_a_later_layers_warm_up_stands_in_place_of_the_other(recipe):
    """A share and a number of updates: the file's, a step's, a profile's, a setting's; and what a run keeps of it."""
    text = GOOD.replace("epochs = 3", "warmup_ratio = 0.2").replace("learning_rate = 1e-4", "warmup_updates = 7")
    text += "[profiles.large.training]\nwarmup_updates = 9\n"

    def warmups(**options):
        loaded, _ = load(recipe(text), REGISTRY, **options)
        assert from_json(json.dumps(loaded.identity()), REGISTRY, "recipe.json").identity() == loaded.identity()
        return [(step.training.warmup_ratio, step.training.warmup_updates) for step in loaded.steps.values()]

    assert warmups() == [(0.2, None), (0.0, 7)]
    assert warmups(profile="large") == [(0.0, 9), (0.0, 7)]
    assert warmups(profile="large", sets=("training.warmup_ratio=0.5",)) == [(0.5, None), (0.0, 7)]
    assert warmups(sets=("steps.second.training.warmup_ratio=0.3",)) == [(0.2, None), (0.3, None)]


def test_the_papers_trainings_can_be_said(recipe):
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


def test_a_generator_refuses_options_before_anything_is_learnt(recipe, monkeypatch):
    monkeypatch.setattr(Masked, "refuses", lambda self, decoding: {"num_beams": f"{decoding.num_beams} are too many"})
    text = GOOD.replace('type = "masked"', 'type = "masked"\n[decoding]\nnum_beams = 4')
    assert mistakes(recipe(text)) == ["my.toml:10: decoding.num_beams: 4 are too many"]


def test_a_table_without_a_name_is_no_less_a_mistake_below_a_profile(recipe):
    messages = mistakes(recipe(GOOD + '[steps.""]\n[profiles.small.steps.first]\nstart = "pretrained"\n'))
    assert (
        messages[0]
        == "my.toml:26: steps.: a name may contain only letters, digits, '_' and '-'; the name of a step also '.'"
    )


def test_a_profile_extends_another(recipe, tmp_path):
    """It is laid over that one, which may be the parent recipe's, whatever stands first in the file."""
    larger = (
        '[profiles.larger]\nextends = "large"\n[profiles.larger.backbone]\nhidden_size = 512\nnum_attention_heads = 8\n'
    )
    path = recipe(GOOD.replace("[profiles.small.backbone]", f"{larger}[profiles.small.backbone]"))
    loaded, layers = load(path, REGISTRY, "larger")
    assert (loaded.backbone.num_hidden_layers, loaded.backbone.hidden_size, loaded.profile) == (9, 512, "larger")
    assert layers.place(("backbone", "num_hidden_layers")).startswith(str(path))
    child = tmp_path / "child.toml"
    child.write_text(
        f'extends = "{path.name}"\n[profiles.largest]\nextends = "larger"\n[profiles.largest.training]\nepochs = 9'
    )
    assert load(child, REGISTRY, "largest")[0].backbone.hidden_size == 512
    assert load(child, REGISTRY, "largest")[0].training.epochs == 9


@pytest.mark.parametrize(
    ("extends", "message"),
    [
        ('"lage"', "there is no profile 'lage'; did you mean 'large'?; there are: small, large"),
        ("3", "there is no profile '3'; there are: small, large"),
        ('"small"', "the profile 'small' extends itself through small"),
    ],
)
def test_a_profile_that_cannot_be_extended(recipe, extends, message):
    text = GOOD.replace(
        "[profiles.small.backbone]", f"[profiles.small]\nextends = {extends}\n[profiles.small.backbone]"
    )
    (line,) = mistakes(recipe(text))
    assert re.fullmatch(rf".*my\.toml:\d+: profiles\.small\.extends: {re.escape(message)}", line), line


def test_a_profile_is_not_chosen_by_a_setting(recipe):
    assert mistakes(recipe(), sets=("profile=large",)) == ["--set profile=large: choose a profile with --profile"]


def test_a_mistake_in_a_setting_names_the_setting(recipe):
    assert mistakes(recipe(), sets=("steps.second.training.epochs=0",)) == [
        "--set steps.second.training.epochs=0: steps.second.training.epochs: must be at least 1, not 0"
    ]


def test_steps_that_start_from_one_another_go_in_a_circle(recipe):
    text = GOOD.replace(
        'train = ["backbone"]\n[steps.second]', 'train = ["backbone"]\nstart = "second"\n[steps.second]'
    )
    assert (
        "my.toml:14: steps.first.start: the steps start from each other in a cycle: first -> second -> first"
        in mistakes(recipe(text))
    )


def test_a_recipe_that_extends_itself(recipe):
    recipe('extends = "b.toml"', "a.toml")
    recipe('extends = "a.toml"', "b.toml")
    assert "extends itself" in mistakes(Path("a.toml"))[0]


def test_a_missing_recipe_says_what_to_do():
    assert "no such recipe; `mmgen init`" in mistakes(Path("nowhere.toml"))[0]


def test_the_saved_recipe_is_the_recipe(recipe):
    loaded, _ = load(recipe(), REGISTRY)
    again = from_json(json.dumps(loaded.identity()), REGISTRY, "recipe.json")
    assert again.identity() == loaded.identity()


@pytest.mark.parametrize(
    "path", sorted((Path(__file__).parents[2] / "recipes").glob("*.toml")), ids=lambda path: path.stem
)
def test_every_recipe_passes_with_every_profile(path, tmp_path):
    done = mmgen_here(tmp_path, "check", path)
    assert done.returncode == 0, done.stderr


def test_every_recipe_is_counted():
    """One that comes in has to be looked at here, one that goes as well."""
    assert len(list((Path(__file__).parents[2] / "recipes").glob("*.toml"))) >= 1


def test_show_can_be_run_again(recipe):
    shown = mmgen_here(Path(), "show", recipe()).stdout
    assert "# my.toml:23" in shown and "# default" in shown
    first, _ = load(Path("my.toml"), REGISTRY)
    second, _ = load(recipe(shown, "shown.toml"), REGISTRY)
    assert {**second.identity(), "profile": None} == {**first.identity(), "profile": None}


DEEP = ".".join("a" * 50_000)


@pytest.mark.parametrize(
    "line", [f"{DEEP} = 1", f"[{DEEP}]", f"x = {{ y = 1, {DEEP} = 1 }}", f'x = """\n"""\n{DEEP}=1']
)
def test_a_key_of_names_without_end_is_told_at_once(tmp_path, line):
    (tmp_path / "r.toml").write_text(f'name = "r"\n{line}\n')
    place = 4 if "\n" in line else 2
    assert mistakes(tmp_path / "r.toml") == [
        f"{tmp_path}/r.toml:{place}: a key has more than 32 names separated by dots; keys of a recipe have fewer"
    ]


def test_a_text_with_many_dots_is_no_key(tmp_path):
    """Neither are 32 names too many."""
    text = f'description = """\n{"." * 99}\n{DEEP[:200]}\n"""\n{".".join("a" * 32)} = 1\n'
    (tmp_path / "r.toml").write_text(text)
    assert "has more than" not in " ".join(mistakes(tmp_path / "r.toml"))


@pytest.mark.parametrize("value", ["{a=" * 3000, "[" * 100_000])
def test_a_setting_nested_without_end_is_told(recipe, value):
    (message,) = mistakes(recipe(GOOD), sets=(f"x={value}",))
    assert message.startswith("--set x=") and "not a TOML value: maximum recursion depth exceeded" in message


def test_lines_of_keys():
    text = 'a = 1\n[b]\nc = [\n  1, # x = 2\n]\nd = """\nnot = 1\n"""\n"e f" = 2\n[b.g]\nh.i = 3\n'
    assert lines(text) == {
        ("a",): 1,
        ("b",): 2,
        ("b", "c"): 3,
        ("b", "d"): 6,
        ("b", "e f"): 9,
        ("b", "g"): 10,
        ("b", "g", "h"): 11,
        ("b", "g", "h", "i"): 11,
    }


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_recipe_or_an_error(text):
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "any.toml"
        path.write_text(text, encoding="utf-8", errors="surrogateescape") if text.isprintable() else path.write_bytes(
            text.encode("utf-8", "replace")
        )
        with pytest.raises(RecipeError):
            load(path, REGISTRY)
