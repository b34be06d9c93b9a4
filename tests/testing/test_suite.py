"""The conformance suites: fakes and our own parts pass, and typically broken parts are caught in words."""

from __future__ import annotations

import ast
import pkgutil
import re
import sys
from pathlib import Path

import pytest
from kit import families, toys
from kit.broken import (
    CAPTIONS,
    Counted,
    Denies,
    Judge,
    Mean,
    backbone_suite,
    dataset,
    embedder,
    extractor,
    generator,
    metric,
    objective,
    tiny,
)
from mmgen_encoders import Bert, Roberta
from mmgen_extractors import Detector, Roi
from mmgen_generators import Masked
from mmgen_inputs import Regions, Text
from mmgen_scenes import Discovery, Scenes
from pydantic import Field, SerializeAsAny, field_serializer

import mmgen.testing
from mmgen.errors import RecipeError
from mmgen.testing import TinyBackbone, Toy, ToyDataset, failures
from mmgen.testing.toy import WordsEmbedder


@pytest.mark.slow
class TestEncoderWithMoreRows(mmgen.testing.BackboneSuite):
    """RoBERTa's positions begin behind its padding index."""

    def config(self):
        return Roberta(
            num_hidden_layers=1,
            hidden_size=32,
            num_attention_heads=2,
            vocab_size=100,
            extra_token_types=1,
            extra_positions=2,
        )


@pytest.mark.slow
class TestText(mmgen.testing.EmbedderSuite):
    def config(self):
        return Text()

    def examples(self):
        return CAPTIONS

    def backbone_config(self):
        return Bert(num_hidden_layers=1, hidden_size=32, num_attention_heads=2, vocab_size=80)


@pytest.mark.slow
class TestMasked(mmgen.testing.GeneratorSuite):
    def config(self):
        return Masked(max_tokens=8)


class TestScenes(mmgen.testing.DatasetSuite):
    def config(self):
        return Scenes(train_size=8, val_size=2, test_size=2, image_size=64)


class TestDiscovery(mmgen.testing.MetricSuite):
    def config(self):
        return Discovery()

    def examples(self):
        return Scenes(train_size=6, val_size=1, test_size=1).build().split("train")


@pytest.mark.parametrize("family", toys.families())
def test_every_encoder_passes(family):
    suite = backbone_suite(lambda: family(num_hidden_layers=2, hidden_size=32, num_attention_heads=2, vocab_size=100))
    suite.source_logits = lambda self, backbone, ids: families.source_logits(backbone, ids)
    assert failures(suite) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    "suite",
    [
        tiny(TinyBackbone),
        embedder(WordsEmbedder),
        generator(Denies),
        objective(Judge),
        dataset(ToyDataset),
        metric(Counted),
        extractor(Mean),
    ],
)
def test_the_bases_of_broken_parts_pass(suite):
    assert failures(suite) == {}


# --- the suites themselves ---


POINTERS = sorted(
    {
        (path.name, pointer)
        for path in Path(mmgen.testing.__file__).parent.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for pointer in re.findall(r"\bmmgen(?:\.\w+)+", node.value)
    }
)


@pytest.mark.parametrize("file, pointer", POINTERS)
def test_what_a_suite_points_to_exists(file, pointer):
    """Docstrings and messages of `mmgen.testing` name modules, classes and methods of mmgen."""
    assert pkgutil.resolve_name(pointer) is not None


@pytest.mark.parametrize("name", [name for name in mmgen.testing.__all__ if name.endswith("Suite") and name != "Suite"])
def test_every_suite_points_to_its_contract(name):
    module = sys.modules[getattr(mmgen.testing, name).__module__]
    assert re.search(r"[Tt]he contract\s+is\s+in\s+`mmgen\.", module.__doc__)


def test_tests_cannot_be_overridden():
    with pytest.raises(TypeError, match=r"Lenient.test_widths overrides a test of BackboneSuite; fix the part instead"):
        type("Lenient", (mmgen.testing.BackboneSuite,), {"test_widths": lambda self: None})
    with pytest.raises(TypeError, match=r"overrides a test of SightSuite"):
        type("Lenient", (tiny(TinyBackbone),), {"test_positions_matter": None})


def test_tests_can_be_added():
    class More(mmgen.testing.DatasetSuite):
        def config(self):
            return Toy()

        def test_there_are_cats(self):
            raise AssertionError("no cats")

    assert failures(More) == {"test_there_are_cats": "no cats"}


def test_a_suite_without_a_config_says_what_to_define():
    messages = failures(type("Empty", (mmgen.testing.DatasetSuite,), {}))
    assert set(messages.values()) == {
        "NotImplementedError: Empty must define config(), which returns the config of the part to test"
    }


def test_an_undescribed_field_and_a_lossy_config_are_caught():
    class Silent(Toy):
        """A data set."""

        size: int = 3

    suite = type("Suite", (mmgen.testing.DatasetSuite,), {"config": lambda self: Silent()})
    assert failures(suite) == {
        "test_every_field_is_described": "fields without a description: size; write Field(..., description=...)"
    }


class Holder(Toy):
    """A data set that holds a part."""

    inner: SerializeAsAny[mmgen.DatasetConfig] = Field(Scenes(train_size=3), description="another data set")


class LossyHolder(Toy):
    """A data set whose part loses its own fields."""

    inner: mmgen.DatasetConfig = Field(Scenes(train_size=3), description="another data set")


def assert_survives_json(config):
    suite = type("Suite", (mmgen.testing.DatasetSuite,), {"config": lambda self: config})
    suite().test_config_survives_json()


class WritesText(Toy):
    """A data set whose JSON a recipe refuses."""

    size: int = Field(3, description="a number")

    @field_serializer("size")
    def as_text(self, value):
        return str(value)


def test_a_config_is_read_from_json_as_strictly_as_a_recipe():
    with pytest.raises(RecipeError) as error:
        assert_survives_json(WritesText())
    assert str(error.value) == 'JSON of a WritesText in a run folder: size: must be a whole number, not "3"'


def test_parts_inside_a_config_survive_json():
    assert_survives_json(Holder())
    assert_survives_json(Regions(extractor=Roi(detector=Detector())))
    with pytest.raises(AssertionError, match=r"LossyHolder changes when read from the JSON of a run folder \(inner\)"):
        assert_survives_json(LossyHolder())
