"""Does cost grow linearly? Time over a range of images, questions an image, and beams, with a straight line through
it."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import torch

from mmgen.decoding import Decoding

from .run import Settings, timed
from .systems import Ours
from .workload import build, encoder_of, examples, forbid_end

IMAGES, QUESTIONS, BEAMS = (2, 4, 8, 16, 32), (1, 2, 3, 5, 8), (1, 2, 4, 6, 8)
LEARNT, WRITTEN = 3, 20  # questions an image where images vary; tokens of a text that is written


@dataclass(frozen=True)
class Curve:
    """Seconds of a whole batch over a count, and the straight line of least squares: seconds = start + slope x
    count."""

    over: str
    counts: tuple[int, ...]
    seconds: tuple[float, ...]

    @property
    def line(self) -> tuple[float, float]:
        import numpy as np

        slope, start = np.polyfit(self.counts, self.seconds, 1)
        return float(start), float(slope)

    @property
    def off(self) -> float:
        """The point farthest from the line, relative to the line."""
        start, slope = self.line
        return max(
            abs(seconds / (start + slope * count) - 1) for count, seconds in zip(self.counts, self.seconds, strict=True)
        )


def measure(settings: Settings, say: Callable[[str], None] = lambda line: None) -> list[Curve]:
    """Learning over images (three questions each) and over questions (of `settings.batch` images), writing over beams.
    The counts of a curve are measured in turn, round after round; its points are medians."""
    device = torch.device(settings.device)
    with tempfile.TemporaryDirectory(prefix="mmgen-bench-") as folder:
        torch.manual_seed(0)
        model = build(settings.shape, max(*IMAGES, settings.batch), WRITTEN, Path(folder), settings.dropout)
        forbid_end(encoder_of(model).get_output_embeddings(), model.backbone.end_id)
        ours = Ours(model, device)

        def chosen(images: int, questions: int):
            return examples(settings.shape, model, images, questions, settings.tokens)

        learn_images = {count: ours.learn(chosen(count, LEARNT)) for count in IMAGES}
        learn_questions = {count: ours.learn(chosen(settings.batch, count)) for count in QUESTIONS}
        write_beams = {
            count: ours.write(chosen(settings.batch, 1), Decoding(num_beams=count), WRITTEN) for count in BEAMS
        }
        model.train()
        curves = [
            _curve("images, learning", learn_images, ours, settings, say),
            _curve("questions an image, learning", learn_questions, ours, settings, say),
        ]
        model.eval()
        with torch.inference_mode():
            return [*curves, _curve("beams, writing", write_beams, ours, settings, say)]


def _curve(
    over: str, runs: dict[int, Callable[[], int]], ours: Ours, settings: Settings, say: Callable[[str], None]
) -> Curve:
    taken: dict[int, list[float]] = {count: [] for count in runs}
    for number in range(settings.rounds + 1):
        say(f"{over}: round {number} of {settings.rounds}")
        for count, run in runs.items():
            seconds = timed(ours, run, settings)[0]
            if number:
                taken[count].append(seconds)
    return Curve(over, tuple(runs), tuple(median(seconds) for seconds in taken.values()))


def rows(curves: Sequence[Curve]) -> list[tuple[str, ...]]:
    """Over what, the counts and their ms, the line, how far the worst point is from it."""
    return [
        (
            curve.over,
            ", ".join(map(str, curve.counts)),
            ", ".join(f"{1000 * seconds:,.0f}" for seconds in curve.seconds),
            "{:,.0f} + {:,.1f} x".format(*(1000 * part for part in curve.line)),
            f"{curve.off:.0%}",
        )
        for curve in curves
    ]


HEADER = ("over", "counts", "ms a batch", "line, ms", "farthest point from it")


def draw(curves: Sequence[Curve], path: Path) -> None:
    """One picture, a panel a curve, as SVG."""
    from mmgen.plotting import colour, figure, svg

    with figure(3.1 * len(curves), 2.6, salt="scaling") as drawn:
        for place, curve in enumerate(curves, 1):
            panel = drawn.add_subplot(1, len(curves), place)
            start, slope = curve.line
            ends = (0, curve.counts[-1])
            panel.plot(ends, [start + slope * count for count in ends], color=colour(7), linewidth=1)
            panel.plot(curve.counts, curve.seconds, "o", color=colour(0), markersize=5)
            panel.set(xlabel=curve.over, xlim=(0, None), ylim=(0, None))
            if place == 1:
                panel.set_ylabel("seconds a batch")
        path.write_text(svg(drawn), encoding="utf-8")
