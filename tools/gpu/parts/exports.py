"""Exports: weights stored as bfloat16 beside float32, and the time from a command to its first answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import share, table


def steps(sizes: Sizes, work: Path) -> list[Step]:
    tiny = sizes.device == "cpu"
    few = ("--images", "8", "--written", "4", "--epochs", "1") if tiny else ()
    shape = ("--layers", str(sizes.layers), "--width", str(sizes.width), "--words", str(sizes.words))
    return [
        Step("half", ("-m", "tools.gpu.measures.exports", *sizes.shape, *few)),
        Step("cold", ("-m", "tools.cold_start", *shape, "--rounds", "1" if tiny else "5"), read),
    ]


def read(stdout: str) -> Figures:
    """The figures of `tools.cold_start`, which commands may print lines before."""
    figures: Figures = json.loads(stdout.strip().rpartition("\n")[2])
    return figures


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    texts = []
    if "half" in figures:
        result = figures["half"]
        before, after = (result["bytes"][half] for half in ("False", "True"))
        rows = [
            (
                name,
                f"{case['mean_logits']:.4f}",
                f"{case['most_logits']:.4f}",
                share(case["equal_texts"]),
                "-" if case["scores"] is None else f"{case['scores']:.4f}",
            )
            for name, case in result["cases"].items()
        ]
        header = ("beside float32", "logits, mean", "logits, most", "equal texts", "their scores")
        texts += [
            f"{result['examples']:,} test examples; differences of logits are shares of their standard deviation. "
            f"Weights: {before:,} bytes, as bfloat16 {after:,}.",
            "",
            *table(header, rows),
            "",
        ]
    if "cold" in figures:
        result = figures["cold"]
        rows = [
            (f"on the {kind}", *(f"{result[kind][name]:.2f}" for name in ("command", "baseline", "ratio")))
            for kind in ("clock", "processor")
        ]
        header = ("first answer", "command, s", "imports and weights, s", "ratio")
        texts += [f"An export of {result['bytes']:,} bytes of weights.", "", *table(header, rows)]
    return texts


EXPORTS = Part("exports", "Exports", steps, lines)
