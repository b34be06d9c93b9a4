"""What parts return is checked where a run takes it: the part is named, in one line."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import torch
from broken import AsksATextNotATuple, ListsAlternatives, MasksNothing, NeverReadsTheSame, OwnsTheBackbone, RepeatsIds
from mmgen_masked import Masked
from mmgen_masked.generator import MaskedGenerator

from mmgen.data.checked import check_reads, check_scores
from mmgen.data.collate import Collator
from mmgen.data.datasets import Datasets
from mmgen.data.seeds import resolve
from mmgen.errors import PluginError
from mmgen.evaluation.generate import generate
from mmgen.model import Model
from mmgen.parts import Metric
from mmgen.registry import installed
from mmgen.tensors import Loss, Scores, Segment
from mmgen.testing import TEXTS, Tiny, Toy, ToyDataset, Words
from mmgen.testing.toy import WordsEmbedder

EXAMPLES = [resolve(example) for example in Toy().build().split("train")[:3]]
LONGER = [*EXAMPLES[:2], replace(EXAMPLES[2], inputs={"caption": "the cat near the water and the ball"})]


def model(embedder=WordsEmbedder, generator=MaskedGenerator) -> Model:
    """A tiny model of these parts."""
    torch.manual_seed(0)
    backbone = Tiny().build(texts=TEXTS)
    return Model(backbone, {"caption": embedder("caption", backbone)}, generator(Masked(max_tokens=8), backbone)).eval()


def learn(made: Model) -> Loss:
    return made(Collator(made, made.inputs)(EXAMPLES))


def told(call, *arguments) -> str:
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
        (Wide, "input 'caption' (Wide): states have width 13; the backbone reads 12, its input_size"),
        (Swapped, "input 'caption' (Swapped): states are (5, 3, 12), not (B, N, E) with B = 3"),
        (Unmasked, "input 'caption' (Unmasked): mask is torch.int64 (3, 5), not bool (3, 5)"),
        (Bare, "input 'caption' (Bare): forward gives a float32 tensor (3, 5, 12), not a mmgen.tensors.Segment"),
    ],
)
def test_a_wrong_segment(embedder, words):
    assert told(learn, model(embedder)) == words


def test_the_backbone_as_an_attribute():
    assert told(model, OwnsTheBackbone) == (
        "input 'caption' (OwnsTheBackbone): keeps the backbone as its own; write self._backbone = [backbone], a list"
    )


def test_the_owner_is_named():
    found = installed()
    assert found.owner("generator", model().generator).startswith("masked, mmgen-framework ")
    from mmgen_regions import Roi

    assert found.owner("extractor", Roi).startswith("roi, mmgen-framework ")
    assert found.owner("embedder", WordsEmbedder) == "WordsEmbedder"


def test_an_input_that_reads_anew():
    class Reads(WordsEmbedder):
        def __init__(self, field, backbone):
            super().__init__(field, backbone)
            self.reader = NeverReadsTheSame(field, backbone)

    made = model(Reads)
    assert told(check_reads, "caption", made.embedders["caption"], EXAMPLES) == (
        "input 'caption' (Reads): reads differ: example 'red-cat' read twice gives other ids; a read must depend on "
        "the example alone"
    )


def test_padding_that_counts():
    made = model(MasksNothing)
    assert told(check_reads, "caption", made.embedders["caption"], LONGER) == (
        "input 'caption' (MasksNothing): example 'red-cat' has 5 slots alone and 8 in a batch; mask the padding"
    )


def test_a_good_input_is_let_through():
    check_reads("caption", model().embedders["caption"], LONGER)


@pytest.mark.parametrize(
    "loss, words",
    [
        (lambda loss: loss.mean, "forward gives a float32 tensor (), not a Loss of a sum () and a whole count ()"),
        (
            lambda loss: Loss(loss.sum[None], loss.count),
            "forward gives a Loss of a float32 tensor (1,) and a int64 tensor (), not a Loss",
        ),
        (lambda loss: Loss(loss.sum, loss.count * math.nan), "and a float32 tensor (), not a Loss of a sum () and a"),
        (lambda loss: Loss(loss.sum, 3), "a Loss of a float32 tensor () and 3, not a Loss"),
    ],
)
def test_a_wrong_loss(loss, words):
    class Wrong(MaskedGenerator):
        def forward(self, model, batch):
            return loss(super().forward(model, batch))

    assert words in told(learn, model(generator=Wrong))


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda texts: texts[1:], "generate gives 2 lists of texts for 3 examples"),
        (
            lambda texts: [some * 2 for some in texts],
            "generate gives 2 texts for 'red-cat'; num_return_sequences is 1",
        ),
        (
            lambda texts: [[replace(one, id="other") for one in some] for some in texts],
            "generate gives a text with the id 'other' for 'red-cat'",
        ),
        (
            lambda texts: [[one.text[:0] for one in some] for some in texts],
            "generate gives '' for 'red-cat'; it must be a mmgen.tensors.Generation",
        ),
        (
            lambda texts: [[replace(one, score=math.nan) for one in some] for some in texts],
            "generate gives a text for 'red-cat' whose score is nan; it is a mean log-probability",
        ),
    ],
)
def test_wrong_texts(change, words):
    class Wrong(MaskedGenerator):
        def generate(self, model, batch, options):
            return change(super().generate(model, batch, options))

    assert told(generate, model(generator=Wrong), EXAMPLES).endswith(f"): {words}")


@pytest.mark.parametrize(
    "scores, words",
    [
        (Scores({"hits": math.nan}), "hits is nan; values are finite numbers, or None with a note"),
        (Scores({"hits": "all"}), "hits is 'all'; values are finite numbers, or None with a note"),
        (Scores({"hits": 1.0}, {"hits": [1.0, 1.0]}), "hits has 2 values for 3 examples"),
        (Scores({"hits": 1.0}, {"hits": [1.0, 1.0, math.inf]}), "hits of an example is inf; values are finite numbers"),
        ({"hits": 1.0}, "score gives {'hits': 1.0}; it must be a mmgen.tensors.Scores"),
    ],
)
def test_wrong_scores(scores, words):
    class Brm(Metric):
        def score(self, generations, examples):
            return scores

    assert told(check_scores, scores, "mine", Brm(), EXAMPLES) == f"metrics.mine (Brm): {words}"


def test_good_scores_are_let_through():
    good = Scores({"hits": 1, "others": None}, {"hits": [1.0, 0, True]}, ("others: none",))
    assert check_scores(good, "mine", None, EXAMPLES) is good


class SharesIds(ToyDataset):
    def split(self, name):
        return [replace(example, id=f"{name}{number}"[-1]) for number, example in enumerate(super().split(name)[:4])]


class RepeatsOne(ToyDataset):
    def split(self, name):
        return [*super().split(name), super().split(name)[1]]


@pytest.mark.parametrize(
    "dataset, words",
    [
        (
            AsksATextNotATuple,
            "example 'red-cat' of 'train': its targets are 'what color is the cat ?'; they are a tuple of texts, "
            "('...',)",
        ),
        (ListsAlternatives, "example 'red-cat' of 'train': the alternatives of 'caption' are a list; write a tuple"),
        (RepeatsIds, "example '0' of 'val': its id is in 'train' too; put the split's name into it"),
        (SharesIds, "example '0' of 'val': its id is in 'train' too; put the split's name into it"),
        (
            RepeatsOne,
            "example 'green-cat' of 'train': its id is there twice; ids name the texts that are written",
        ),
    ],
)
def test_wrong_examples(dataset, words):
    class Mine(Toy):
        """A data set."""

        def build(self):
            return dataset()

    recipe = type("Recipe", (), {"data": Mine(), "steps": {}, "inputs": {"caption": Words(reads=("caption",))}})
    assert told(Datasets(recipe).fingerprint) == f"data (Mine): {words}"
