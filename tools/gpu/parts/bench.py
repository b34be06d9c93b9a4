"""`mmgen bench` on the device: compared with the naive procedure, transformers' decoders, and the peak rate."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..machine import Machine, Peaks
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import share, table

OURS = "ours"
PASSES = {"train": 3, "decode": 1}  # what is counted is a pass forward; training is three


def steps(sizes: Sizes, work: Path) -> list[Step]:
    commands = []
    for precision in ("bf16", "fp32"):
        for what, more in (("train", ()), ("decode", ("--without", "naive"))):
            few = ("-k", "2") if what == "train" else ("--search", "greedy", "--tokens", "4")
            tiny = few if sizes.device == "cpu" else ()
            command = ("-m", "mmgen", "bench", what, *sizes.bench, "--precision", precision, *more, *tiny, "--json")
            commands.append(Step(f"{what}-{precision}", command))
    return commands if sizes.device != "cpu" else commands[2:]


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    peaks = machine.peaks
    rows = []
    for name, measured in figures.items():
        what, _, precision = name.partition("-")
        for result in measured["results"]:
            rate = 2 * PASSES[what] * result["work"]["multiply_adds"] / result["median"] / 1e12
            times = result["times_ours"]
            compared = "1" if result["system"] == OURS else f"{times['measured']:.2f} ({times['counted']:.2f})"
            case = f"{what}, {precision}, {result['case']}"
            cells = (case, result["system"], f"{1000 * result['median']:.3f}", share(result["spread"]), compared)
            rows.append((*cells, f"{rate:.1f}", share(of_peak(rate, precision, peaks))))
    header = ("case", "system", "ms per question", "spread", "times ours (counted)", "TFLOP/s", "share of peak")
    peak = f"Peak: {peaks.bf16:g} TFLOP/s in bf16, {peaks.fp32:g} in fp32 (without TF32)" if peaks else ""
    source = f"{peak}; source: datasheet." if peaks else "Unknown device: its peak rate is not known."
    return [source, "", *table(header, rows)]


def of_peak(rate: float, precision: str, peaks: Peaks | None) -> float | None:
    return rate / getattr(peaks, precision) if peaks else None


RACING = Part("bench", "mmgen bench", steps, lines)
