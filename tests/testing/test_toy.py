"""The fakes around a backbone pass their suites, and are enough for a model."""

import torch
from kit.broken import CAPTIONS
from mmgen_masked import Masked

import mmgen.testing
from mmgen.evaluation.generate import generate
from mmgen.testing import TEXTS, Tiny, Toy, Words


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
