"""Texts of a split that is written in halves where memory runs out."""

import pytest
import torch
from kit import toys
from kit.training import RecordedProgress
from kit.writing import assert_same_texts, limit_memory, write_texts

from mmgen.decoding import Decoding
from mmgen.evaluation.answers import generate

pytestmark = pytest.mark.slow


SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
    "samples": Decoding(do_sample=True, num_return_sequences=2),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_run_writes_the_same_texts_in_halves(tmp_path, search):
    model, progress = toys.model(), RecordedProgress()
    expected = write_texts(tmp_path / "whole", model, SEARCHES[search])
    tried = limit_memory(model, most=3)
    assert_same_texts(write_texts(tmp_path / "cut", model, SEARCHES[search], progress), expected)
    assert tried == [8, 4, 2, 2, 2, 2, 2, 2, 1]
    assert progress.lines == ["s: writing: out of memory; from here on 2 examples at a time"]


@pytest.mark.parametrize("search", SEARCHES)
def test_a_model_writes_the_same_texts_in_halves(search, caplog):
    model, examples = toys.model(), toys.examples(7)
    torch.manual_seed(0)
    expected = generate(model, examples, SEARCHES[search], batch_size=5)
    tried = limit_memory(model, most=2)
    caplog.clear()
    with caplog.at_level("WARNING", "mmgen"):
        torch.manual_seed(0)
        assert_same_texts(generate(model, examples, SEARCHES[search], batch_size=5), expected)
    assert tried == [5, 2, 2, 1, 2]
    assert caplog.messages == ["writing: out of memory; from here on 2 examples at a time"]
