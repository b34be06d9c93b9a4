"""Fuzzing of recipes and settings: an accepted recipe must have every key of the TOML, by an independent merging of
layers."""

from __future__ import annotations

import tomllib
from pathlib import Path
from random import Random
from typing import Any

from mmgen.recipe import layers, load
from mmgen.registry import installed

from . import mutations
from .harness import Surface

HOUSE = Path(__file__).resolve().parents[2]
TOY = """\
name = "toy"
description = "Everything that a recipe may hold."
profile = "small"
seed = 3
output = "runs"

[backbone]
type = "bert"
num_hidden_layers = 2
hidden_size = 32
num_attention_heads = 2
[inputs.image]
type = "regions"
max_regions = 8
normalize = "length"
[inputs.image.extractor]
type = "roi"
spread = 2
[inputs.caption]
type = "text"
[generator]
type = "masked"
max_tokens = 12
[sequence]
close = true
[training]
batch_size = 16
learning_rate = 1e-3
[steps.words]
inputs = ["caption"]
train = ["backbone"]
start = "pretrained"
[steps.both]
inputs = [
    "image",
    "caption",
]
train = ["image", "backbone"]
start = "words"
training = { epochs = 2, warmup_ratio = 0.5 }
[objectives.hidden]
type = "masked_words"
[steps.mixed]
inputs = ["image", "caption"]
train = ["backbone"]
objectives = ["hidden"]
evaluate = false
data = [
    { type = "scenes", share = 2 },
    { type = "scenes", train_size = 9, inputs = ["caption"] },
]
[data]
type = "scenes"
train_size = 24
[decoding]
num_beams = 4
num_return_sequences = 2
[metrics.meaning]
type = "discovery"
[profiles.small]
seed = 4
[profiles.small.data]
test_size = 6
[profiles.small.steps.words.training]
epochs = 1
[profiles.large.backbone]
type = "roberta"
"""
CHILD = 'extends = "parent.toml"\nname = "child"\n[training]\nepochs = 7\n[profiles.small]\ndescription = "here"\n'
ODD = [
    "1",
    "-1",
    "0",
    "1e400",
    "nan",
    "inf",
    "true",
    '""',
    '"x"',
    '"../../x"',
    '"/tmp/x"',
    '"~/x"',
    '"$HOME"',
    "[]",
    "{}",
    "[[]]",
    "['caption']",
    '["image", "image"]',
    "1979-05-27",
    "07:32:00",
    '"\\u0000"',
    '"\\n"',
    "'''a\nb'''",
    "99999999999999999999",
    '{ type = "text" }',
    "{ type = 3 }",
    "[training]",
    "[[steps]]",
    "[[steps.mixed.data]]",
    "data = []",
    '{ type = "scenes" },',
    "share = 0",
    'objectives = ["generator"]',
    "[steps.both.training]",
    'type = "masked"',
    "extends = 'parent.toml'",
    "profile = 'large'",
    "[profiles.'a/b']",
    "[inputs.'../x']\ntype = 'text'",
    "[steps.'']",
    "# only a comment",
    "=",
    "a.b.c = 1",
    "epochs = 10000000000",
    '"a b" = 1',
    "['x'",
    '"""',
    f"{'.'.join('a' * 3000)} = 1",
    f"[{'.'.join('a' * 3000)}]",
    "x = " + "[" * 3000,
    "x = " + "{a=" * 3000,
    "num_workers = 1000000",
    "updates = 0",
    "updates = 10",
    "jobs = 2",
    'learning_rates = { "backbone.*" = 1e-4 }',
    'learning_rates = { "(" = -1 }',
    'start = "export:x"',
    'start = "hf:a/b"',
    "candidates = 4",
    'columns = { prompt = "level" }',
    'type = "any_order"',
    '{ "a" = 0.1 }',
    '"own"',
    '"any_order"',
    "train_size = 1000000000000",
]
WHOLE = ("training.epochs=3", 'name = "other"', "steps.both.training.epochs=2", "decoding.candidates=4")  # settings
KEYS = [
    "seed",
    "name",
    "output",
    "training.epochs",
    "training.learning_rate",
    "steps.both.training.epochs",
    "steps.both.inputs",
    "steps.both.start",
    "steps.mixed.data",
    "steps.mixed.data.0.share",
    "backbone.type",
    "backbone.hidden_size",
    "inputs.image.max_regions",
    "inputs.image.extractor.spread",
    "inputs.caption",
    "inputs",
    "data.type",
    "decoding.num_beams",
    "metrics",
    "profile",
    "profiles.small",
    "x.y",
    "",
    "a b",
    '"a"',
    "generator.max_tokens",
    "generator.length",
    "generator.block",
    "decoding.steps",
    "decoding.order",
    "decoding.candidates",
    "jobs",
    "training.updates",
    "training.learning_rates",
    'training.learning_rates."backbone.*"',
    "training.freeze",
    "objectives.hidden.weight",
    "steps.both.objectives",
    "steps.mixed.evaluate",
    "data.columns",
    "data.prompts",
    "metrics.meaning",
    "training.num_workers",
    "data.train_size",
    ".".join("a" * 3000),
]


def surfaces() -> list[Surface]:
    return [
        Surface(
            "recipe",
            _prepare,
            _spoil,
            _read,
            _check,
            r":\d+|no such|not valid|cannot be read|is missing|must be|has no type|unknown profile|extends "
            r"itself|at least|steps: must not be empty",
            60,
            r"\.toml|no such recipe",
        ),
        Surface(
            "settings",
            _prepare,
            _spoil_setting,
            _read_setting,
            _check_setting,
            r"--set|is missing|parent\.toml:\d+",
            60,
            r"--set|is missing|parent\.toml:\d+",
        ),
    ]


def _prepare(folder: Path) -> Any:
    texts = [path.read_text(encoding="utf-8") for path in sorted((HOUSE / "recipes").glob("*.toml"))]
    (folder / "parent.toml").write_text(TOY, encoding="utf-8")
    for path in sorted((HOUSE / "recipes").glob("*.toml")):
        (folder / path.name).write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return {"texts": [TOY, TOY, CHILD, *texts], "registry": installed()}


def _spoil(draw: Random, folder: Path, prepared: Any) -> Path:
    text = draw.choice(prepared["texts"])
    path = folder / "spoilt.toml"
    if draw.random() < 0.35:
        path.write_bytes(mutations.bytes_(draw, text.encode(), [donor.encode() for donor in prepared["texts"]]))
    else:
        mutations.write(path, mutations.lines(draw, text, ODD))
    return path


def _read(path: Path, prepared: Any) -> Any:
    profiles = layers.profiles(path)
    profile = profiles[len(path.read_bytes()) % len(profiles)] if profiles else None
    return load.load(path, prepared["registry"], profile), profile


def _check(path: Path, content: Any, prepared: Any) -> None:
    (chosen, layered), profile = content
    expected = _merged(path)
    profiles, default = expected.pop("profiles", {}), expected.pop("profile", None)
    for table in _with_parents(profile or default, profiles):
        _merge(expected, table)
    _same(expected, chosen.model_dump(mode="json"), ())
    again = load.from_json(chosen.model_dump_json(), prepared["registry"], "again")
    assert again == chosen, "the saved recipe is another one"
    for key, origin in layered.origins.items():
        file, _, number = origin.rpartition(":")
        if number.isdigit():
            line = Path(file).read_bytes().decode("utf-8").split("\n")[int(number) - 1]
            if key[-1].isdigit() and ("{" in line or "[[" in line):
                continue  # an array's entry
            names = [name.encode().decode("unicode_escape") if "\\" in name else name for name in (key[-1], line)]
            assert key[-1] in line or "\\" in line or names[0] in names[1], (
                f"{'.'.join(key)} is not in line {number}: {line}"
            )


def _with_parents(name: str | None, profiles: dict[str, Any]) -> list[dict[str, Any]]:
    """The tables of a profile, the one that it extends first; none without a name."""
    if name is None:
        return []
    table = dict(profiles[name])
    return [*_with_parents(table.pop("extends", None), profiles), table]


def _merged(path: Path) -> dict[str, Any]:
    """A file merged over its parents."""
    table = tomllib.loads(path.read_bytes().decode("utf-8-sig"))
    parent = table.pop("extends", None)
    below = _merged(path.parent / parent) if parent is not None else {}
    _merge(below, table)
    return below


def _merge(below: dict, above: dict) -> None:
    for name, value in above.items():
        old = below.get(name)
        if isinstance(value, dict):
            if not isinstance(old, dict) or ("type" in value and "type" in old and value["type"] != old["type"]):
                below[name] = {}
            _merge(below[name], value)
        else:
            below[name] = value


def _same(expected: Any, actual: Any, at: tuple) -> None:
    """Every value of the file is in the recipe."""
    if isinstance(expected, dict):
        assert isinstance(actual, dict), f"{at}: {actual!r} for a table"
        for name, value in expected.items():
            assert name in actual, f"{at}: '{name}' is lost"
            _same(value, actual[name], (*at, name))
    elif isinstance(expected, list):
        assert isinstance(actual, list) and len(actual) == len(expected), f"{at}: {actual!r} for {expected!r}"
        for number, value in enumerate(expected):
            _same(value, actual[number], (*at, number))
    elif isinstance(expected, str):
        from_recipe = isinstance(actual, str) and Path(actual).parts[-len(parts := Path(expected).parts) :] == parts
        # a path counts from the recipe: it ends as it was written, but for steps upwards
        upwards = expected.startswith("..") and Path(actual).name == Path(expected).name
        assert actual == expected or from_recipe or upwards, f"{at}: {actual!r} for {expected!r}"
    else:
        assert actual == expected and isinstance(actual, bool) == isinstance(expected, bool), (
            f"{at}: {actual!r} for {expected!r}"
        )


def _spoil_setting(draw: Random, folder: Path, prepared: Any) -> Path:
    key, value = draw.choice(KEYS), draw.choice(ODD)
    setting = draw.choice(
        (
            f"{key}={value}",
            f"{key}={value}",
            f"{key} = {value}",
            key,
            f"={value}",
            f"{key}=={value}",
            f"{key}.{key}={value}",
        )
    )
    if draw.random() < 0.2:
        setting = draw.choice(WHOLE)
    if draw.random() < 0.3:
        setting = mutations.bytes_(draw, setting.encode()).decode("utf-8", "replace").replace("\0", "")[:3000]
    prepared["setting"] = setting
    return folder / "parent.toml"


def _read_setting(path: Path, prepared: Any) -> Any:
    return load.load(path, prepared["registry"], sets=(prepared["setting"],))


def _check_setting(path: Path, content: Any, prepared: Any) -> None:
    name, _, value = prepared["setting"].partition("=")
    try:
        table = tomllib.loads(f"{name.strip()} = {value}")
    except tomllib.TOMLDecodeError:
        table = tomllib.loads(f"{name.strip()} = '''{value}'''")
        assert "\n" not in prepared["setting"], "several lines taken for one value"
    expected = _merged(path)
    profiles, default = expected.pop("profiles"), expected.pop("profile")
    _merge(expected, profiles[default])
    _merge(expected, table)
    _same(expected, content[0].model_dump(mode="json"), ())
