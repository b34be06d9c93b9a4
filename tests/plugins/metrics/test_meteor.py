"""METEOR: the input and output of its program, and the results without Java."""

import numpy as np
import pytest
from kit.java import COUNTS, fake_java, pairs
from mmgen_metrics import CaptionScores
from mmgen_metrics.meteor import Program, meteor, statistics, summands

from mmgen.errors import UnavailableError

pytestmark = pytest.mark.slow


def test_meteor_s_program_sees_one_line_a_segment_and_no_bars_but_its_own(monkeypatch, tmp_path):
    fake_java(tmp_path, monkeypatch, "print('Error:', sys.stdin.readline())")
    with pytest.raises(UnavailableError, match=r"Error: SCORE \|\|\| a cat sat \|\|\| the cat \|\|\| a dog runs$"):
        statistics(["a dog\nruns |||"], [["a cat\u2028sat", "the\r\n||| cat"]], Program())


def test_meteor_s_formula_equals_its_program():
    sums = summands(np.array([line.split() for line in COUNTS], np.float64))
    assert meteor(sums) == pytest.approx(list(COUNTS.values()), abs=1e-12)
    assert meteor(sums.sum(0)) == pytest.approx(0.4019772548541734, abs=1e-12)


def test_meteor_s_program_is_started_once_for_all_texts_and_again_when_it_has_died(monkeypatch, tmp_path):
    line = " ".join(next(iter(COUNTS)).split())
    answers = f"for line in sys.stdin:\n    print('{line}', flush=True)"
    fake_java(tmp_path, monkeypatch, f"open('{tmp_path}/starts', 'a').write('.')\n{answers}")
    metric = CaptionScores(meteor=True, tokenizer="own").build()
    values = [metric.score(*pairs((text, "a dog"))).values["METEOR"] for text in ("a dog", "the dog")]
    assert values[0] == values[1] and (tmp_path / "starts").read_text() == "."
    process = metric.program.process
    process.kill()
    process.wait()
    assert metric.score(*pairs(("dogs", "a dog"))).values["METEOR"] == values[0]
    assert (tmp_path / "starts").read_text() == ".."
    process = metric.program.process
    del metric
    assert process.poll() is not None  # it ends with the metric
