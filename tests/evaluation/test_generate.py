"""Texts of a split that is written in halves where memory runs out."""

import pytest
from kit import toys
from kit.training import RecordedProgress
from kit.writing import assert_same_texts, limit_memory, write_texts

from mmgen.decoding import Decoding
from mmgen.evaluation.answers import generate

pytestmark = pytest.mark.slow


SEARCHES = {
    "greedy": Decoding(),
    "beams": Decoding(num_beams=3, num_return_sequences=2),
}


@pytest.mark.parametrize("search", SEARCHES)
def test_a_run_writes_the_same_texts_in_halves(tmp_path, search):
    model, progress = toys.model(), RecordedProgress()
    expected = write_texts(tmp_path / "whole", model, SEARCHES[search])
    tried = limit_memory(model, most=3)
    assert_same_texts(write_texts(tmp_path / "cut", model, SEARCHES[search], progress), expected)
    assert tried == [8, 4, 2, 2, 2, 2, 2, 2, 1]
    assert progress.lines == ["s: writing: out of memory; from here on 2 examples at a time"]


def test_samples_are_drawn_again_and_the_same_every_time(tmp_path):
    model, sampling = toys.model(), Decoding(do_sample=True)
    expected = write_texts(tmp_path / "whole", model, sampling)
    limit_memory(model, most=3)
    cut, again = write_texts(tmp_path / "cut", model, sampling), write_texts(tmp_path / "again", model, sampling)
    assert cut == again and [len(texts) for texts in cut] == [len(texts) for texts in expected]
    assert len({text.text for texts in cut for text in texts}) > 6  # every piece draws separately


@pytest.mark.parametrize("search", SEARCHES)
def test_a_model_writes_the_same_texts_in_halves(search, caplog):
    model, examples = toys.model(), toys.examples(7)
    expected = generate(model, examples, SEARCHES[search], batch_size=5)
    tried = limit_memory(model, most=2)
    caplog.clear()
    with caplog.at_level("WARNING", "mmgen"):
        assert_same_texts(generate(model, examples, SEARCHES[search], batch_size=5), expected)
    assert tried == [5, 2, 2, 1, 2]
    assert caplog.messages == ["writing: out of memory; from here on 2 examples at a time"]
