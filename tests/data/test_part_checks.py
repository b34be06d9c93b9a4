"""A run checks the results of parts; an error names the part in one line."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from kit.broken import OwnsTheBackbone
from mmgen_masked import Masked
from mmgen_masked.generator import MaskedGenerator, MaskedTargets

from mmgen.configs import MetricConfig
from mmgen.data.collate import Collator
from mmgen.data.part_checks import check_reads, example_problem, references_of, score_with
from mmgen.data.seeds import resolve
from mmgen.errors import DataError, PluginError
from mmgen.evaluation.answers import generate
from mmgen.model import Model, compose
from mmgen.parts import Metric, Record
from mmgen.registry import installed
from mmgen.scoring.compare import System, compare
from mmgen.tensors import All, Example, Loss, Scores, Segment, Targets
from mmgen.testing import TEXTS, Tiny, Toy, Words
from mmgen.testing.toy import WordsEmbedder, WordsReader

EXAMPLES = [resolve(example) for example in Toy().build().split("train")[:3]]
LONGER = [*EXAMPLES[:2], replace(EXAMPLES[2], inputs={"caption": "the cat near the water and the ball"})]
WIDTH = Tiny().embedding


def model(embedder=WordsEmbedder, generator=MaskedGenerator) -> Model:
    """A tiny model of these parts."""
    torch.manual_seed(0)
    backbone = Tiny().build(texts=TEXTS)
    return Model(backbone, {"caption": embedder("caption", backbone)}, generator(Masked(max_tokens=8), backbone)).eval()


def compute_loss(built_model: Model) -> Loss:
    return built_model(Collator(built_model, built_model.inputs)(EXAMPLES))


def plugin_error(call, *arguments) -> str:
    with pytest.raises(PluginError) as error:
        call(*arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


class Wide(WordsEmbedder):
    def forward(self, ids, mask):
        states = super().forward(ids, mask).states
        return Segment(torch.cat([states, states[..., :1]], -1), mask)


class Swapped(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states.transpose(0, 1), mask)


class Unmasked(WordsEmbedder):
    def forward(self, ids, mask):
        return Segment(super().forward(ids, mask).states, mask.long())


class Bare(WordsEmbedder):
    def forward(self, ids, mask):
        return super().forward(ids, mask).states


@pytest.mark.parametrize(
    "embedder, words",
    [
        (Wide, "input 'caption' (Wide): states have width 13, but input_size of the backbone is 12"),
        (Swapped, "input 'caption' (Swapped): states must have shape (B, N, E) with B = 3, not (5, 3, 12)"),
        (Unmasked, "input 'caption' (Unmasked): mask must be bool of shape (3, 5), not torch.int64 (3, 5)"),
        (Bare, "input 'caption' (Bare): forward must return a mmgen.tensors.Segment, not a float32 tensor (3, 5, 12)"),
    ],
)
def test_a_wrong_segment(embedder, words):
    assert plugin_error(compute_loss, model(embedder)) == words


def test_the_backbone_as_an_attribute():
    assert plugin_error(model, OwnsTheBackbone) == (
        "input 'caption' (OwnsTheBackbone): contains the backbone's words.weight as a parameter, which would be "
        "saved twice and trained with the input; write self._backbone = [backbone], a list"
    )


def test_the_owner_is_named():
    registry = installed()
    assert registry.owner("generator", model().generator).startswith("masked, mmgen-framework ")
    from mmgen_regions import Roi

    assert registry.owner("extractor", Roi).startswith("roi, mmgen-framework ")
    assert registry.owner("embedder", WordsEmbedder) == "WordsEmbedder"


def test_a_reader_that_raises():
    class Raises(WordsEmbedder):
        def __init__(self, field, backbone):
            super().__init__(field, backbone)
            self.reader.read = lambda example: {}["x"]

    assert plugin_error(check_reads, "caption", model(Raises).embedders["caption"], EXAMPLES, WIDTH) == (
        "input 'caption' (Raises): read raises KeyError: 'x'"
    )


class NumpyReader(WordsReader):
    def collate(self, items):
        return {name: tensor.numpy() for name, tensor in super().collate(items).items()}


class Arrays(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = NumpyReader(field, backbone)


class ListReader(WordsReader):
    def collate(self, items):
        return [*super().collate(items).values()]


class Lists(WordsEmbedder):
    def __init__(self, field, backbone):
        super().__init__(field, backbone)
        self.reader = ListReader(field, backbone)


@pytest.mark.parametrize(
    "embedder, problem",
    [
        (Arrays, "collate returns 'ids' as a ndarray, not as a tensor"),
        (Lists, "collate returns a list, not a mapping of names to tensors"),
    ],
)
def test_a_collate_that_gives_no_tensors_is_named_before_training_and_in_every_batch(embedder, problem):
    built_model = model(embedder)
    before = plugin_error(check_reads, "caption", built_model.embedders["caption"], EXAMPLES, WIDTH)
    for message in (before, plugin_error(compute_loss, built_model)):
        assert message.startswith("input 'caption' (") and message.endswith(f"): {problem}")


def test_labels_that_are_no_tensors():
    class Reader(MaskedTargets):
        def collate(self, rows):
            return replace(super().collate(rows), labels={"kind": np.zeros(3)})

    class Generator(MaskedGenerator):
        def __init__(self, config, backbone):
            super().__init__(config, backbone)
            self.reader.__class__ = Reader

    built_model = model(generator=Generator)
    assert plugin_error(compute_loss, built_model).endswith("returns labels 'kind' as a ndarray, not as a tensor")


@pytest.mark.parametrize("value", [None, WordsEmbedder, Toy(), np.zeros((30, 30))])
def test_a_build_that_returns_no_part(value):
    class Nothing(Words):
        def build(self, backbone):
            return value

    message = plugin_error(compose, Tiny(), {"caption": Nothing()}, Masked(max_tokens=8), TEXTS)
    shown = " ".join(repr(value).split())[:60]
    assert message == (f"input 'caption' (Nothing): build returns {shown}; expected a mmgen.parts.Embedder")


def test_an_embedder_without_a_reader():
    class Unread(Words):
        def build(self, backbone):
            built = WordsEmbedder("caption", backbone)
            del built.reader
            return built

    message = plugin_error(compose, Tiny(), {"caption": Unread()}, Masked(max_tokens=8), TEXTS)
    assert message.endswith("build returns WordsEmbedder() without a reader; set self.reader in __init__")


def test_a_good_input_passes():
    check_reads("caption", model().embedders["caption"], LONGER, WIDTH)


@pytest.mark.parametrize(
    "loss, words",
    [
        (lambda loss: loss.sums["loss"], "forward returns a float32 tensor (), not a Loss with a sum () for 'loss'"),
        (
            lambda loss: Loss({"loss": loss.sums["loss"][None]}),
            "forward returns a Loss of 'loss': a float32 tensor (1,), not a Loss with a sum () for 'loss'",
        ),
    ],
)
def test_a_wrong_loss(loss, words):
    class Wrong(MaskedGenerator):
        def forward(self, model, batch, targets):
            return loss(super().forward(model, batch, targets))

    assert words in plugin_error(compute_loss, model(generator=Wrong))


@pytest.mark.parametrize(
    "targets, words",
    [
        (None, "returns None; expected a mmgen.tensors.Targets"),
        (Targets({"loss": math.nan}), "counts nan for 'loss'; a count must be a number of at least 0"),
    ],
)
def test_wrong_targets(targets, words):
    class Wrong(MaskedTargets):
        def collate(self, rows):
            return targets

    built_model = model()
    built_model.generator.reader.__class__ = Wrong
    assert plugin_error(compute_loss, built_model) == f"generator (Wrong): collate {words}"


def test_a_reader_that_cannot_collate():
    class Wrong(WordsReader):
        def collate(self, items):
            return torch.stack([torch.tensor(len(item)) for item in items], 3)

    embedder = model().embedders["caption"]
    embedder.reader.__class__ = Wrong
    assert "): collate raises IndexError: Dimension out of range" in plugin_error(
        check_reads, "caption", embedder, EXAMPLES, WIDTH
    )


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda texts: texts[1:], "generate returns 2 lists of texts for 3 examples"),
        (
            lambda texts: [[replace(text, score=math.nan) for text in some] for some in texts],
            "generate returns a text for 'red-cat' whose score is nan; a score must be a mean log-probability; the "
            "weights of the model may be damaged: far too large weights give nan",
        ),
    ],
)
def test_wrong_texts(change, words):
    class Wrong(MaskedGenerator):
        def generate(self, model, batch, options):
            return change(super().generate(model, batch, options))

    assert plugin_error(generate, model(generator=Wrong), EXAMPLES).endswith(f"): {words}")


@pytest.mark.parametrize(
    "scores, words",
    [
        (Scores({"hits": math.nan}), "hits is nan; values must be finite numbers, or None with a note"),
        (Scores({"hits": 1.0}, {"hits": [1.0, 1.0]}), "hits has 2 values for 3 examples"),
        ({"hits": 1.0}, "score returns {'hits': 1.0}; expected a mmgen.tensors.Scores"),
    ],
)
def test_wrong_scores(scores, words):
    assert plugin_error(score_with, "mine", FixedScores(scores), [], EXAMPLES) == f"metrics.mine (FixedScores): {words}"


class FixedScores(Metric):
    """Returns its argument as scores, or raises it."""

    def __init__(self, scores):
        self.scores = scores

    def score(self, generations, examples):
        return self.references(examples)

    def references(self, examples):
        if isinstance(self.scores, BaseException):
            raise self.scores
        return self.scores


@pytest.mark.parametrize(
    "scores, words",
    [
        ({"hits": 1.0}, "references returns {'hits': 1.0}; expected a mmgen.tensors.Scores, or None"),
    ],
)
def test_wrong_references(scores, words):
    assert plugin_error(references_of, "mine", FixedScores(scores), EXAMPLES) == f"metrics.mine (FixedScores): {words}"
    assert references_of("mine", FixedScores(None), EXAMPLES) is None


def test_what_a_metric_raises():
    assert (
        plugin_error(score_with, "mine", FixedScores(KeyError("a")), [], EXAMPLES)
        == "metrics.mine (FixedScores): score raises KeyError: 'a'"
    )
    assert plugin_error(references_of, "mine", FixedScores(ValueError("two\nlines")), EXAMPLES) == (
        "metrics.mine (FixedScores): references raises ValueError: two lines"
    )
    assert (
        plugin_error(score_with, "mine", FixedScores(ValueError()), [], EXAMPLES)
        == "metrics.mine (FixedScores): score raises ValueError"
    )
    for passes in (DataError("a file"), KeyboardInterrupt()):
        with pytest.raises(type(passes)) as caught:
            score_with("mine", FixedScores(passes), [], EXAMPLES)
        assert caught.value is passes


def test_a_comparison_names_the_metric_too():
    class Config(MetricConfig):
        type: str = "mine"

        def build(self):
            return FixedScores(ValueError("no"))

    assert plugin_error(compare, [System("a", [["x"]])], EXAMPLES[:1], {"mine": Config()}) == (
        "metrics.mine (FixedScores): score raises ValueError: no"
    )


def test_good_scores_pass():
    good = Scores({"hits": 1, "others": None}, {"hits": [1.0, 0, True]}, ("others: none",))
    assert score_with("mine", FixedScores(good), [], EXAMPLES) is good


@pytest.mark.parametrize(
    "value", [torch.ones(2), 3, (1, 2), All((torch.ones(2),)), All("ab"), Record("a", np.ones((1, 2), np.float32))]
)
def test_inputs_are_keys_and_texts(value):
    problem = example_problem(Example("a", {"image": value}))
    assert problem.startswith("'image' is ")
    assert problem.endswith("; inputs must be keys, texts, tuples of alternatives, or All")


@pytest.mark.parametrize("value", ["a", ("a", "b"), (), All(("a", "b")), All(((0, 3, (1, 2)),))])
def test_keys_texts_and_positions_are_inputs(value):
    assert example_problem(Example("a", {"image": value})) == ""
