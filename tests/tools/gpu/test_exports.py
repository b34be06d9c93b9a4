"""The part about exports: differences by hand, its lines, and the whole comparison with a model of a few weights."""

import json
from types import SimpleNamespace

import pytest
import torch

from tools.gpu.machine import Machine
from tools.gpu.measures.exports import compare, difference
from tools.gpu.parts.exports import EXPORTS, lines, read
from tools.gpu.sizes import TINY

HERE = Machine(None, 0.0, 0, "a processor", 2, {"torch": "2"})


def test_differences_by_hand():
    logits = torch.tensor([[0.0, 2.0], [0.0, 2.0]])  # a standard deviation of 1.1547
    first = logits, ["a", "b"], [-1.0, -2.0]
    second = logits + torch.tensor([[0.0, 0.0], [0.0, 1.1547]]), ["a", "c"], [-1.5, -9.0]
    assert difference(first, second) == pytest.approx(
        {"mean_logits": 0.25, "most_logits": 1.0, "equal_texts": 0.5, "scores": 0.5}, rel=1e-4
    )
    assert difference(first, (logits, ["x", "y"], [0.0, 0.0]))["scores"] is None


def test_the_lines_of_the_page():
    case = {"mean_logits": 0.002, "most_logits": 0.01, "equal_texts": 0.75, "scores": None}
    ratio = {"command": 5.0, "baseline": 4.0, "ratio": 1.25}
    figures = {
        "half": {"examples": 4, "bytes": {"False": 2000, "True": 1000}, "cases": {"stored in bfloat16": case}},
        "cold": read("written by step\n" + json.dumps({"bytes": 2000, "clock": ratio, "processor": ratio})),
    }
    text = "\n".join(lines(figures, HERE))
    assert "4 test examples;" in text and "Weights: 2,000 bytes, as bfloat16 1,000." in text
    assert "| stored in bfloat16 | 0.0020 | 0.0100 | 75.0% | - |" in text
    assert "| on the clock | 5.00 | 4.00 | 1.25 |" in text and "| on the processor | 5.00 | 4.00 | 1.25 |" in text
    assert lines({}, HERE) == []


def test_the_stand_in_is_tiny(tmp_path):
    half, cold = EXPORTS.steps(TINY, tmp_path)
    assert half.arguments[:2] == ("-m", "tools.gpu.measures.exports") and "--epochs" in half.arguments
    assert cold.arguments == (
        "-m",
        "tools.cold_start",
        "--layers",
        "1",
        "--width",
        "16",
        "--words",
        "1000",
        "--rounds",
        "1",
    )


@pytest.mark.slow
def test_a_small_model_in_bfloat16_beside_float32(tmp_path, no_page):
    sizes = SimpleNamespace(layers=1, width=16, epochs=1, images=8, written=4, device="cpu")
    figures = compare(sizes, tmp_path)
    assert figures["examples"] == 4 and figures["bytes"]["True"] < 0.7 * figures["bytes"]["False"]
    stored, computed = (figures["cases"][name] for name in ("stored in bfloat16", "stored and computed in bfloat16"))
    assert 0 < stored["mean_logits"] < computed["mean_logits"] < 0.1
