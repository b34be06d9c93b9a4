"""Scaling curves: time over the number of images, questions per image, and beams, each with a fitted straight line."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from mmgen.decoding import Decoding

from .systems import Ours
from .timing import Settings, time_run
from .workload import build, draw_examples, encoder_of, forbid_end

IMAGES, QUESTIONS, BEAMS = (2, 4, 8, 16, 32), (1, 2, 3, 5, 8), (1, 2, 4, 6, 8)
QUESTIONS_PER_IMAGE, TOKENS_PER_TEXT = 3, 20  # while images vary; tokens of a generated text


@dataclass(frozen=True)
class Curve:
    """Seconds per batch over a count, and the least-squares line: seconds = start + slope x count."""

    over: str
    counts: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def line(self) -> tuple[float, float]:
        import numpy as np

        slope, start = np.polyfit(self.counts, self.seconds, 1)
        return float(start), float(slope)

    @property
    def max_deviation(self) -> float:
        """Largest distance of a point from the line, relative to the line."""
        start, slope = self.line
        return max(
            abs(seconds / (start + slope * count) - 1) for count, seconds in zip(self.counts, self.seconds, strict=True)
        )


def measure(settings: Settings, say: Callable[[str], None] = lambda line: None) -> list[Curve]:
    """Curves of training over images (three questions each) and over questions (`settings.batch` images), and of
    generation over beams. The counts of a curve are timed in turn, round after round; its points are medians."""
    device = torch.device(settings.device)
    with tempfile.TemporaryDirectory(prefix="mmgen-bench-") as folder:
        torch.manual_seed(0)
        model = build(settings.shape, max(*IMAGES, settings.batch), TOKENS_PER_TEXT, Path(folder), settings.dropout)
        forbid_end(encoder_of(model).get_output_embeddings(), model.backbone.end_id)
        ours = Ours(model, device)

        def batch(images: int, questions: int):
            return draw_examples(settings.shape, model, images, questions, settings.tokens)

        image_runs = {count: ours.prepare_training(batch(count, QUESTIONS_PER_IMAGE)) for count in IMAGES}
        question_runs = {count: ours.prepare_training(batch(settings.batch, count)) for count in QUESTIONS}
        beam_runs = {
            count: ours.prepare_generation(batch(settings.batch, 1), Decoding(num_beams=count), TOKENS_PER_TEXT)
            for count in BEAMS
        }
        model.train()
        curves = [
            _measure_curve("images, training", image_runs, ours, settings, say),
            _measure_curve("questions per image, training", question_runs, ours, settings, say),
        ]
        model.eval()
        with torch.inference_mode():
            return [*curves, _measure_curve("beams, generation", beam_runs, ours, settings, say)]


def _measure_curve(
    over: str, runs: dict[int, Callable[[], int]], ours: Ours, settings: Settings, say: Callable[[str], None]
) -> Curve:
    times: dict[int, list[float]] = {count: [] for count in runs}
    for number in range(settings.rounds + 1):
        say(f"{over}: round {number} of {settings.rounds}")
        for count, run in runs.items():
            seconds = time_run(ours, run, settings)[0]
            if number:
                times[count].append(seconds)
    return Curve(over, tuple(runs), tuple(median(seconds) for seconds in times.values()))


def rows_of_curves(curves: Sequence[Curve]) -> list[tuple[str, ...]]:
    """Table rows: what varies, the counts and their ms, the line, and the distance of the farthest point."""
    return [
        (
            curve.over,
            ", ".join(map(str, curve.counts)),
            ", ".join(f"{1000 * seconds:,.0f}" for seconds in curve.seconds),
            "{:,.0f} + {:,.1f} x".format(*(1000 * part for part in curve.line)),
            f"{curve.max_deviation:.0%}",
        )
        for curve in curves
    ]


HEADER = ("over", "counts", "ms per batch", "line, ms", "farthest point from line")


def draw(curves: Sequence[Curve], path: Path) -> None:
    """Draw all curves as one SVG, one panel per curve."""
    from mmgen.files import write_text
    from mmgen.plotting import colour, figure, svg

    with figure(3.1 * len(curves), 2.6, salt="scaling") as canvas:
        for number, curve in enumerate(curves, 1):
            panel = canvas.add_subplot(1, len(curves), number)
            start, slope = curve.line
            ends = (0, curve.counts[-1])
            panel.plot(ends, [start + slope * count for count in ends], color=colour(7), linewidth=1)
            panel.plot(curve.counts, curve.seconds, "o", color=colour(0), markersize=5)
            panel.set(xlabel=curve.over, xlim=(0, None), ylim=(0, None))
            if number == 1:
                panel.set_ylabel("seconds per batch")
        write_text(path, svg(canvas))
