"""Typical mistakes of part authors: each is reported in words, by a suite, when plugins are found, or by the first
update."""

import random
import textwrap
from dataclasses import replace
from typing import Literal

import pytest
import torch
from kit.broken import (
    CAPTIONS,
    Judge,
    Labels,
    metric,
)
from kit.broken import Counted as CountedMetric
from kit.thirdparty import AUDIO
from kit.toys import mmgen_here, recipe
from torch import nn

import mmgen
import mmgen.testing
from mmgen.data.collate import Collator
from mmgen.examples import Scores
from mmgen.model import Objectives, compose
from mmgen.objectives import Objective
from mmgen.tensors import Hiding, Loss
from mmgen.testing import TEXTS, Greedy, ObjectiveSuite, Tiny, Toy, Words
from mmgen.testing.suite import Suite

AGREE = "test_config_and_reader_agree"
EXAMPLES = Toy().build().split("train")[:4]


def caught(suite: type[Suite], test: str) -> str:
    """The message of a suite's test."""
    with pytest.raises((AssertionError, mmgen.PluginError)) as error:
        getattr(suite(), test)()
    return str(error.value)


def config_of(build, **members) -> mmgen.ObjectiveConfig:
    class Config(mmgen.ObjectiveConfig):
        """An objective."""

        type: Literal["judge"] = "judge"
        gives = members.pop("gives", "label")
        makes_rows = members.pop("makes_rows", False)

        def build(self, backbone, vocabularies):
            return build(backbone)

        def hidden(self, inputs):
            return members.get("hidden", ())

    return Config()


def objective(build, test: str, inputs=None, **members) -> str:
    """The message of its suite's test about an objective."""
    suite = type("Suite", (ObjectiveSuite,), {"config": lambda self: config_of(build, **members)})
    if inputs:
        suite.inputs = lambda self: inputs
    return caught(suite, test)


def first_update(build, inputs=None, **members) -> str:
    """The error in the first update of a model with an objective, or in building the model."""
    with pytest.raises(mmgen.PluginError) as error:
        model = compose(
            Tiny(width=32),
            inputs or {"caption": Words()},
            Greedy(),
            texts=TEXTS,
            objectives=Objectives({"own": config_of(build, **members)}),
        )
        batch = Collator(model, model.inputs, ("own",))(EXAMPLES)
        model(batch).mean.backward()
    assert "\n" not in str(error.value)
    return str(error.value)


def built_with(build) -> str:
    """The messages about an embedder while a model is built and its first loss is computed."""

    class Changed(Words):
        """Changed."""

        def build(self, backbone):
            return build(self.fields[0], backbone)

    with pytest.raises(mmgen.PluginError) as error:
        model = compose(Tiny(), {"caption": Changed()}, Greedy(), texts=TEXTS)
        model(Collator(model, model.inputs)(EXAMPLES))
    return str(error.value)


# --- objectives ---


class Renames(Judge):
    def forward(self, model, batch, targets):
        return Loss({"length": super().forward(model, batch, targets).sums["loss"]})


class TensorCounts(Labels):
    def collate(self, rows):
        targets = super().collate(rows)
        return replace(targets, counts={"loss": torch.tensor(len(rows.examples))})


class RandomLabels(Labels):
    def collate(self, rows):
        return replace(super().collate(rows), labels={"labels": torch.tensor([random.random() for _ in rows.examples])})


class PredictsSeven(Judge):
    def predict(self, model, batch, targets):
        return super().predict(model, batch, targets)[:7]


class Hides(Labels):
    def hides(self, readers):
        return {"caption": Hiding()}


class OwnRows(Labels):
    def rows(self, example, draw, draw_other):
        return [example, example]


class PublishesAnother(Judge):
    def published(self, weights):
        return {f"other.{name}": tensor for name, tensor in weights.items()}


class InAList(Judge):
    """A head that is not registered with torch."""

    def __init__(self, backbone):
        nn.Module.__init__(self)
        self.reader, self.heads = Labels(), [nn.Linear(backbone.hidden_size, 1)]

    @property
    def head(self):
        return self.heads[0]


class Detaches(Judge):
    def forward(self, model, batch, targets):
        return Loss({"loss": super().forward(model, batch, targets).sums["loss"].detach()})


class KeepsATeacher(Judge):
    """Frozen by its author, correctly."""

    def __init__(self, backbone):
        super().__init__(backbone)
        self.teacher = nn.Linear(3, 3).requires_grad_(False)


def reads(reader, base=Judge):
    return type(reader.__name__, (base,), {"reads": reader})


class Bags(Words):
    """Words that cannot be masked."""

    hides = None

    def build(self, backbone):
        embedder = super().build(backbone)
        embedder.reader.hides = None
        return embedder


NEW = {
    "n1 a loss of another name": (
        lambda: first_update(Renames),
        "own: Renames gives the losses ['length'], but its reader counts ['loss']",
    ),
    "n3 a count is a tensor": (
        lambda: objective(reads(TensorCounts), "test_counts_and_sums"),
        "for 'loss'; a count must be a number of at least 0",
    ),
    "n4 draws from random": (
        lambda: objective(reads(RandomLabels), "test_draws_depend_on_the_example"),
        "two reads in one epoch give different targets; draw only from `Rows.draw`",
    ),
    "n6 gives without predict": (
        lambda: objective(type("Mute", (Judge,), {"predict": Objective.predict}), AGREE),
        'gives is "label", but Mute has no method predict; write predict, or set gives = None',
    ),
    "predict without gives": (
        lambda: objective(Judge, AGREE, gives=None),
        "Judge has a method predict, but gives is None, so it is never called; set gives, or remove predict",
    ),
    "n7 seven predictions": (
        lambda: objective(PredictsSeven, "test_predictions"),
        "own (PredictsSeven): predict returns answers to 7 examples, not to 33",
    ),
    "n8 hides what hides nothing": (
        lambda: objective(reads(Hides), AGREE, {"caption": Bags()}, hidden=("caption",)),
        "hides the input 'caption', whose reader cannot hide anything (its `hides` is None)",
    ),
    "n9 hides without hidden": (
        lambda: objective(reads(Hides), AGREE),
        "the config's hidden() returns [], but the reader hides ['caption']; they must name the same inputs",
    ),
    "n11 rows without makes_rows": (
        lambda: objective(reads(OwnRows), AGREE),
        "makes_rows is False in the config, but OwnRows has a method rows",
    ),
    "makes_rows in the config alone": (
        lambda: objective(Judge, AGREE, makes_rows=True),
        "makes_rows is True in the config, but Labels has no method rows",
    ),
    "n12 publishes a name that it does not have": (
        lambda: objective(PublishesAnother, "test_published_weights"),
        "published takes weights with unknown names (other.of.nobody.weight, other.of.nobody.bias)",
    ),
    "n13 a head in a list": (
        lambda: objective(InAList, "test_training_lowers_the_loss"),
        "that is not trained, because no module owns it; keep layers as attributes or in a nn.ModuleList, not in a "
        "list or a dict, and tensors as nn.Parameter",
    ),
    "n16 a detached loss": (
        lambda: objective(Detaches, "test_training_lowers_the_loss"),
        "forward returns a loss without a gradient; do not detach it (detach, item, no_grad, a new tensor)",
    ),
}


@pytest.mark.parametrize("name", NEW)
def test_a_mistake_of_an_objective_is_caught_in_words(name):
    report, words = NEW[name]
    assert words in report()


def test_what_an_author_froze_passes_the_suite():
    suite = type("Suite", (ObjectiveSuite,), {"config": lambda self: config_of(KeepsATeacher)})
    suite().test_training_lowers_the_loss()


def test_a_loss_with_nothing_to_count_may_have_no_gradient():
    class CountsNothing(Labels):
        def collate(self, rows):
            return replace(super().collate(rows), counts={"loss": 0})

    class Nothing(Judge):
        reads = CountsNothing

        def forward(self, model, batch, targets):
            return Loss({"loss": torch.zeros(())})

    model = compose(
        Tiny(), {"caption": Words()}, Greedy(), texts=TEXTS, objectives=Objectives({"own": config_of(Nothing)})
    )
    assert float(model(Collator(model, model.inputs, ("own",))(EXAMPLES)).mean) == 0


# --- other parts ---


class NotANumber(CountedMetric):
    def score(self, generations, examples):
        return Scores({"hits": float("nan")})


class GivesADict(CountedMetric):
    def score(self, generations, examples):
        return {"hits": 1.0}


OTHER = {
    "10b no number": (lambda: caught(metric(NotANumber), "test_values"), "hits is nan; values must be finite numbers"),
    "10c a dict": (lambda: caught(metric(GivesADict), "test_values"), "expected a mmgen.examples.Scores"),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_mistake_of_another_part_is_caught_in_words(name):
    report, words = OTHER[name]
    assert words in report()


CLASSES = {  # mistake -> code of a package, and words of `mmgen plugins` or `mmgen check`
    "6b a key without an annotation": (
        AUDIO.replace("def build", "width = 3\n        def build"),
        "A non-annotated attribute was detected: `width = 3`",
    ),
    "4 the name of another part": (
        AUDIO.replace('"audio"', '"text"'),
        "the embedder 'text' is provided by mmgen",
    ),
}


@pytest.mark.parametrize("name", CLASSES)
def test_a_mistake_of_a_package_is_reported_when_plugins_are_listed(name, site, tmp_path):
    code, words = CLASSES[name]
    site("mmgen-audio", "mmgen_audio", code)
    done = mmgen_here(tmp_path, "plugins", "--strict-plugins")
    assert done.returncode == 1 and words in " ".join(done.stderr.split())


def test_a_key_without_a_default_is_reported_with_its_line(site, tmp_path):
    site("mmgen-audio", "mmgen_audio", AUDIO.replace("def build", "width: int\n        def build"))
    (tmp_path / "toy.toml").write_text(recipe(inputs={"caption": {"type": "audio"}}))
    done = mmgen_here(tmp_path, "check", "toy.toml")
    assert done.returncode == 1 and done.stderr.startswith("error: toy.toml:7: inputs.caption.width: is missing")


COMMAND = """
    from typing import Literal
    import click
    import mmgen
    class Count(mmgen.CommandConfig):
        "Count."
        type: Literal["count"] = "count"
        def build(self):
            IMPORT
            return click.Command("count", callback=lambda: {}["runs"], help="Count.")
    @mmgen.hookimpl
    def register_commands():
        return [Count]
"""


def test_a_command_that_raises_is_named_and_the_traceback_waits(site, tmp_path, monkeypatch):
    site("mmgen-count", "mmgen_count", COMMAND.replace("IMPORT", ""))
    done = mmgen_here(tmp_path, "count")
    assert done.returncode == 1 and done.stderr.splitlines() == [
        "error: mmgen-count 0.3, Count.build.<locals>.<lambda> (mmgen_count.py:10): KeyError: 'runs' "
        "(MMGEN_TRACEBACK=1 prints the traceback)"
    ]
    monkeypatch.setenv("MMGEN_TRACEBACK", "1")
    done = mmgen_here(tmp_path, "count")
    assert done.stderr.startswith("Traceback (most recent call last):")
    assert "KeyError: 'runs'\nerror: mmgen-count" in done.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "code", "words"),
    [
        ("EmbedderSuite", "import torch\n" + textwrap.dedent(AUDIO), "imports torch"),
        ("CommandSuite", COMMAND.replace("IMPORT", "import torch"), "building the command 'Count' imports torch"),
    ],
    ids=["3 torch at the top", "n15 a command that imports torch"],
)
def test_torch_is_imported_too_early(site, tmp_path, kind, code, words):
    import importlib

    (tmp_path / "torch.py").touch()  # the new process finds it instead of torch, which takes seconds to import
    name = "count" if kind == "CommandSuite" else "audio"
    site(f"mmgen-{name}", f"mmgen_{name}", code)
    module = importlib.import_module(f"mmgen_{name}")
    config = getattr(module, name.title())
    base = getattr(mmgen.testing, kind)
    suite = type("Suite", (base,), {"config": lambda self: config(), "examples": lambda self: CAPTIONS})
    test = "test_building_it_imports_no_torch" if name == "count" else "test_importing_imports_no_torch"
    assert words in caught(suite, test)
