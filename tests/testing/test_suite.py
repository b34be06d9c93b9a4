"""The conformance suites: fakes and our own parts pass, and typically broken parts are caught in words."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from kit import families, toys
from kit.broken import (
    BROKEN,
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
from mmgen_causal import Causal
from mmgen_encoders import Bert, Roberta
from mmgen_masked import Masked
from mmgen_regions import FasterRcnn, Regions, Roi
from mmgen_scenes import Discovery, Scenes
from mmgen_text import Text
from pydantic import Field, SerializeAsAny
from torch import nn

import mmgen.testing
from mmgen.errors import PluginError
from mmgen.evaluation.generate import generate
from mmgen.tensors import Encoded
from mmgen.testing import TEXTS, Bag, Tiny, TinyBackbone, Toy, ToyDataset, Words, failures, registration
from mmgen.testing.toy import WordsEmbedder


class TestTiny(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny()


class TestWords(mmgen.testing.EmbedderSuite):
    def config(self):
        return Words()

    def examples(self):
        return CAPTIONS


class TestBag(mmgen.testing.EmbedderSuite):
    def config(self):
        return Bag()

    def examples(self):
        return CAPTIONS


class TestTinyWithMoreRows(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny(types=3, extra_positions=2)


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


class TestToy(mmgen.testing.DatasetSuite):
    def config(self):
        return Toy()


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


@pytest.mark.parametrize(
    "suite, test, words",
    [
        pytest.param(*broken, marks=pytest.mark.slow if number % 8 else (), id=broken[-1][:40])
        for number, broken in enumerate(BROKEN)
    ],
)
def test_a_broken_part_is_caught_in_words(suite, test, words):
    with pytest.raises((AssertionError, PluginError)) as caught:
        getattr(suite(), test)()
    assert words in str(caught.value) and "\n" not in str(caught.value)


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


def test_rotary_positions_pass():
    """Positions that count only by how far apart they are."""

    class Relative(TinyBackbone):
        def encode(self, slots, cache=None, output=()):
            return super().encode(replace(slots, positions=slots.positions - slots.positions[:, :1]), cache, output)

    tiny(Relative)().test_positions_matter()


class MixesRows(Masked):
    """Says wrongly that it can be trained with a backbone whose slots see their whole row."""

    backbones = frozenset({"visible", "row"})


def test_a_generator_whose_training_sees_later_words_is_caught():
    suite = type("Suite", (mmgen.testing.GeneratorSuite,), {"config": lambda self: MixesRows(max_tokens=8)})
    with pytest.raises(AssertionError, match='backbones names "row", but with TinyRow, whose slots see the whole row'):
        suite().test_trains_as_it_writes_with_every_kind_of_backbone()
    for config in (Masked(max_tokens=8), Causal(max_tokens=8)):
        suite = type("Suite", (mmgen.testing.GeneratorSuite,), {"config": lambda self, built=config: built})
        suite().test_trains_as_it_writes_with_every_kind_of_backbone()


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


def test_tests_cannot_be_overridden():
    with pytest.raises(TypeError, match=r"Lenient.test_widths overrides a test of BackboneSuite; fix the part instead"):
        type("Lenient", (mmgen.testing.BackboneSuite,), {"test_widths": lambda self: None})
    with pytest.raises(TypeError, match=r"overrides a test of SightSuite"):
        type("Lenient", (TestTiny,), {"test_positions_matter": None})


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


def test_parts_inside_a_config_survive_json():
    assert_survives_json(Holder())
    assert_survives_json(Regions(extractor=Roi(detector=FasterRcnn(weights="random"))))
    with pytest.raises(AssertionError, match=r"LossyHolder changes when read from the JSON of a run folder \(inner\)"):
        assert_survives_json(LossyHolder())


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
COMPLETE = {"top": "", "name": "brk", "hook": "register_metrics", "gives": "Sum", "entry": "[mmgen]\nbrk = mmgen_brk\n"}


@pytest.mark.parametrize(
    "change, test, words",
    [
        ({}, "test_registered", ""),
        ({}, "test_importing_imports_no_torch", ""),
        ({"top": "import torch"}, "test_importing_imports_no_torch", "importing mmgen_brk imports torch, which slows"),
        (
            {"entry": ""},
            "test_registered",
            "mmgen-brk has no entry point for mmgen_brk, so no recipe can name Sum; write [project.entry-points.mmgen] "
            'and brk = "mmgen_brk" into its pyproject.toml',
        ),
        (
            {"hook": "register_metric"},
            "test_registered",
            "plugin 'brk' (mmgen-brk 0.1) failed to load: unknown hook 'register_metric'; did you mean",
        ),
        (
            {"gives": ""},
            "test_registered",
            "the entry point 'brk' (mmgen_brk) does not give Sum; return it from register_metrics()",
        ),
        (
            {"name": "diversity"},
            "test_registered",
            "two plugins provide the metric 'diversity': mmgen-brk 0.1 and mmgen-framework",
        ),
    ],
)
def test_registration_is_checked(change, test, words, tmp_path, monkeypatch):
    """With a distribution that the test creates."""
    values = {**COMPLETE, **change}
    entry = values.pop("entry")
    (tmp_path / "mmgen_brk.py").write_text(PACKAGE.format(**values))
    (tmp_path / "torch.py").write_text("")  # in place of the real one, which takes seconds
    (folder := tmp_path / "mmgen_brk-0.1.dist-info").mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: mmgen-brk\nVersion: 0.1\n")
    (folder / "entry_points.txt").write_text(entry)
    (folder / "top_level.txt").write_text("mmgen_brk\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mmgen_brk", raising=False)
    registration._distributions.cache_clear()
    registration.import_problem.cache_clear()
    config = importlib.import_module("mmgen_brk").Sum
    suite = type("Suite", (mmgen.testing.Suite,), {"config": lambda self: config()})
    message = failures(suite).get(test, "")
    assert words in message and bool(message) == bool(words)


def test_a_causal_backbone_that_cannot_cache_passes():
    """A recurrent network: reads left to right, skips padding, sees no masks."""

    class Recurrent(TinyBackbone):
        masks, caches = "causal", False

        def __init__(self, config, words):
            super().__init__(config, words)
            self.cell, self.types = nn.GRUCell(config.embedding, config.width), 0

        def encode(self, slots, cache=None, output=()):
            state, states = slots.states.new_zeros(len(slots.states), self.hidden_size), []
            for number in range(slots.states.shape[1]):
                real = slots.layout.real[:, number, None]
                state = torch.where(real, self.cell(slots.states[:, number], state), state)
                states.append(state)
            return Encoded(torch.stack(states, 1))

    class Config(Tiny):
        """A recurrent one."""

        mixes = "row"

        def build(self, texts=None, folder=None):
            return Recurrent(self, super().build(texts, folder).tokenizer.words)

    assert failures(backbone_suite(Config)) == {}
    Config.mixes = "visible"  # `mmgen check` would let the generator `masked` pass
    assert [*failures(backbone_suite(Config))] == ["test_attributes"]


def test_fakes_are_enough_for_a_model():
    """A tiny backbone, an embedder and a toy data set, put together by hand, write something."""
    from mmgen.model import compose

    torch.manual_seed(0)
    model = compose(Tiny(), {"caption": Words()}, Masked(max_tokens=8), texts=TEXTS)
    ((written,),) = generate(model, Toy().build().split("test")[:1])
    assert written.id == "red-chair" and 0 < len(written.tokens) <= 8
