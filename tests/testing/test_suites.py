"""The suites: what all have in common, the fakes and our own encoders, and parts that a suite must let pass."""

import ast
import importlib
import pkgutil
import re
import sys
from pathlib import Path
from typing import Literal

import click
import pytest
from kit import families, toys
from kit.suites import CAPTIONS, failures
from kit.views import Views
from mmgen_encoders import Bert
from mmgen_extractors import Detector, Roi
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text
from mmgen_scenes import Discovery, Scenes
from pydantic import Field, SerializeAsAny

import mmgen.testing
from mmgen.examples import Example
from mmgen.registry import installed
from mmgen.testing import Tiny, Toy, Words
from mmgen.testing.toy import THINGS

SIZES = {"num_hidden_layers": 2, "hidden_size": 32, "num_attention_heads": 2, "vocab_size": 100}


def of(kind, config, **members):
    """A suite of a config."""
    base = getattr(mmgen.testing, f"{kind}Suite")
    return type("Suite", (base,), {"config": lambda self: config, "examples": lambda self: CAPTIONS, **members})


class TestTiny(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny(types=3, extra_positions=2)


class TestWords(mmgen.testing.EmbedderSuite):
    def config(self):
        return Words(bag=True)

    def examples(self):
        return CAPTIONS


@pytest.mark.slow
class TestText(TestWords):
    def config(self):
        return Text()

    def backbone_config(self):
        return Bert(**SIZES)


@pytest.mark.slow
class TestMasked(mmgen.testing.GeneratorSuite):
    def config(self):
        return Masked(max_tokens=8)


class TestViews(mmgen.testing.ObjectiveSuite):
    """A loss that compares the rows of a batch."""

    def config(self):
        return Views()

    def examples(self):
        return [Example(thing, {"caption": thing}, (thing,)) for thing in THINGS]


class TestScenes(mmgen.testing.DatasetSuite):
    def config(self):
        return Scenes(train_size=8, val_size=2, test_size=2, image_size=64)


class TestDiscovery(mmgen.testing.MetricSuite):
    def config(self):
        return Discovery()

    def examples(self):
        return Scenes(train_size=6, val_size=1, test_size=1).build().split("train")


@pytest.mark.slow
@pytest.mark.parametrize("family", toys.families())
def test_every_encoder_passes(family):
    encoder = of("Backbone", family(**SIZES))
    encoder.source_logits = lambda self, backbone, ids: families.source_logits(backbone, ids)
    assert failures(encoder) == {}


# --- what all suites have in common ---


POINTERS = sorted(
    {
        pointer
        for path in Path(mmgen.testing.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for pointer in re.findall(r"\bmmgen(?:\.\w+)+", node.value)
        if pointer not in ("mmgen.", "entry-points.mmgen")
    }
)


@pytest.mark.parametrize("pointer", POINTERS)
def test_what_a_suite_points_to_exists(pointer):
    """Docstrings and messages of `mmgen.testing` name modules, classes and methods of mmgen."""
    assert pkgutil.resolve_name(pointer) is not None


def test_tests_can_be_added_and_not_overridden():
    added = of("Dataset", Toy(), test_there_are_cats=lambda self: 1 / 0)
    assert failures(added) == {"test_there_are_cats": "ZeroDivisionError: division by zero"}
    with pytest.raises(
        TypeError, match=r"Suite.test_splits overrides a test of its suite; fix the part instead, or add"
    ):
        of("Dataset", Toy(), test_splits=None)


def test_a_suite_without_a_config_says_what_to_define():
    messages = failures(type("Empty", (mmgen.testing.DatasetSuite,), {}))
    assert {*messages.values()} == {
        "NotImplementedError: define config(), which returns the config of the part to test"
    }


def test_a_build_of_a_wrong_signature_is_told_once():
    class Wrong(Words):
        """Needs more."""

        def build(self, backbone, vocabularies):
            return super().build(backbone)

    assert failures(of("Embedder", Wrong())) == {
        "test_build_takes_the_arguments_of_the_contract": "build must take the arguments (backbone) of the contract "
        "(missing a required argument: 'vocabularies')"
    }


class Holder(Toy):
    """A data set that holds a part."""

    inner: SerializeAsAny[mmgen.DatasetConfig] = Field(Scenes(train_size=3), description="another data set")


class LossyHolder(Toy):
    """A data set whose part loses its own fields."""

    inner: mmgen.DatasetConfig = Field(Scenes(train_size=3), description="another data set")


def test_configs_are_described_and_survive_json_as_strictly_as_a_recipe():
    for config in (Holder(), Regions(extractor=Roi(detector=Detector()))):
        of("Dataset", config)().test_config_survives_json()
    with pytest.raises(
        AssertionError, match="in the JSON of a run folder; a field with another part must be Serialize"
    ):
        of("Dataset", LossyHolder())().test_config_survives_json()


class Silent(mmgen.CommandConfig):
    """A command without a docstring, or none."""

    type: Literal["silent"] = "silent"
    command: str = Field("silent", description="how to go wrong")

    def build(self):
        if self.command == "torch":
            import torch  # noqa: F401
        return print if self.command == "print" else click.Command(self.command)


@pytest.mark.parametrize(
    "command, message",
    [
        ("silent", "`mmgen silent --help` does not describe the command; give it a docstring"),
        ("print", "Silent returned <built-in function print>; it must return a click.Command"),
        ("torch", "fails, or imports torch; import it inside the function"),
    ],
)
def test_the_suite_of_commands(command, message):
    assert message in failures(of("Command", Silent(command=command)))["test_help_describes_the_command"]


PACKAGE = """
\"\"\"A plugin.\"\"\"
from typing import Literal
import mmgen
{top}

class Sum(mmgen.MetricConfig):
    \"\"\"A metric.\"\"\"
    type: Literal["{name}"] = "{name}"
    def build(self): ...

@mmgen.hookimpl
def {hook}(): return [{gives}]
"""
COMPLETE = {"top": "", "name": "brk", "hook": "register_metrics", "gives": "Sum"}


@pytest.mark.parametrize(
    "change, words",
    [
        ({}, ""),
        (
            {"top": "from mmgen.parts import Metric"},
            "importing mmgen_brk imports torch, which slows down every command",
        ),
        ({"gives": ""}, "give its package an entry point, and return it from a hook (PluginError: no metric is called"),
        ({"name": "diversity"}, "the metric 'diversity' is provided by mmgen"),
    ],
)
def test_registration_is_checked(change, words, site, monkeypatch):
    """With a distribution that the test creates."""
    site("mmgen-brk", "mmgen_brk", PACKAGE.format(**{**COMPLETE, **change}))
    monkeypatch.delitem(sys.modules, "mmgen_brk", raising=False)
    monkeypatch.setattr(mmgen.testing.suite, "distributions", lambda: ["mmgen_brk"])  # reading those of all takes long
    for cache in (mmgen.testing.suite.import_problem, installed):
        cache.cache_clear()
    config = importlib.import_module("mmgen_brk").Sum()
    message = failures(of("Metric", config)).get("test_registered", "")
    assert words in message and bool(message) == bool(words)
