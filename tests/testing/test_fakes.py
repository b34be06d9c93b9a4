"""The fakes of mmgen.testing pass its own suites."""

import torch
from kit.broken import CAPTIONS
from mmgen_generators import Masked

import mmgen.testing
from mmgen.evaluation.answers import generate
from mmgen.testing import TEXTS, Bag, GeneratorSuite, Greedy, Tiny, Toy, Words


class TestBag(mmgen.testing.EmbedderSuite):
    def config(self):
        return Bag()

    def examples(self):
        return CAPTIONS


class TestGreedy(GeneratorSuite):
    def config(self):
        return Greedy()


class TestTiny(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny()


class TestTinyWithMoreRows(mmgen.testing.BackboneSuite):
    def config(self):
        return Tiny(types=3, extra_positions=2)


class TestWords(mmgen.testing.EmbedderSuite):
    def config(self):
        return Words()

    def examples(self):
        return CAPTIONS


class TestToy(mmgen.testing.DatasetSuite):
    def config(self):
        return Toy()


def test_fakes_are_enough_for_a_model():
    """A tiny backbone, an embedder and a toy data set, put together by hand, write something."""
    from mmgen.model import compose

    torch.manual_seed(0)
    model = compose(Tiny(), {"caption": Words()}, Masked(max_tokens=8), texts=TEXTS)
    ((written,),) = generate(model, Toy().build().split("test")[:1])
    assert written.id == "red-chair" and 0 < len(written.tokens) <= 8
