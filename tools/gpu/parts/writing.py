"""Greedy generation for 1,250 pictures, and a profile of training and generation that shows where the time goes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median

from ..machine import Machine
from ..run import Figures, Part, Step
from ..sizes import Sizes
from ..table import goal, share, table

GOAL = 1.0  # seconds for 1,250 pictures
IDLE = 0.6  # a device that is busy for less of the time waits for the processor


def steps(sizes: Sizes, work: Path) -> list[Step]:
    batches = [str(batch) for batch in sizes.batches]
    counts = ("--written", str(sizes.written), "--batches", *batches, "--rounds", str(sizes.rounds))
    command = ("-m", "tools.gpu.measures.passes")
    commands = [Step("profile", (*command, "profiles", *sizes.shape, *counts))]  # the least to do, and it says the most
    for precision in ("bf16", "fp32"):
        for length in sizes.lengths:
            case = ("--precisions", precision, "--lengths", str(length))
            commands.append(Step(f"writing-{precision}-{length}", (*command, "writing", *sizes.shape, *counts, *case)))
    return commands


def lines(figures: Mapping[str, Figures], machine: Machine) -> list[str]:
    texts = []
    cases = [case for name, result in figures.items() if name.startswith("writing-") for case in result["cases"]]
    if cases:
        rows = []
        for case in cases:
            seconds = median(case["seconds"])
            spread = f"{case['seconds'][0]:.2f}-{case['seconds'][-1]:.2f}"
            cells = (f"{case['pictures']:,} pictures, {case['tokens']} tokens", case["precision"], case["batch"])
            rows.append(
                (*cells, f"{seconds:.2f}", spread, f"{case['collating']:.2f}", goal(seconds, GOAL, bool(machine.name)))
            )
        texts += table(("greedy", "precision", "at a time", "s", "lowest-highest", "of them for batches", "goal"), rows)
    if "profile" in figures:
        texts += [
            "",
            *(line for name, result in figures["profile"]["passes"].items() for line in profile(name, result, machine)),
        ]
    return texts


def profile(name: str, result: Figures, machine: Machine) -> list[str]:
    """A pass: its share of the peak, how busy the device was, how often the CPU waited for it, and the longest
    kernels."""
    rate, peaks = result["flop"] / result["seconds"] / 1e12, machine.peaks
    of_peak = f", {rate / getattr(peaks, result['precision']):.1%} of the peak (datasheet)" if peaks else ""
    begin = f"**{name}**, {result['rows']} rows, {result['precision']}: {1000 * result['seconds']:.1f} ms"
    texts = [f"{begin}, {rate:.1f} TFLOP/s{of_peak}."]
    if "busy" not in result:
        return [*texts, "No kernels, because this is not a GPU.", ""]
    busy = result["busy"] / result["seconds"]
    advice = f"less than {IDLE:.0%}: fewer and larger kernels (a static cache, CUDA graphs) would help"
    verdict = advice if busy < IDLE else "a static cache or CUDA graphs would save little"
    spent = (
        f"{result['kernels']:,} kernels took {1000 * result['busy']:.1f} ms of the device, {share(busy)} of the pass"
    )
    texts.append(f"{spent}; {verdict}. The CPU waited for the device {result['waits']} times.")
    rows = [(kernel, f"{1000 * time:.2f}", share(time / result["busy"])) for kernel, time in result["top"]]
    return [*texts, "", *table(("kernel", "ms", "of all kernels"), rows), ""]


WRITING = Part("writing", "Writing", steps, lines)
