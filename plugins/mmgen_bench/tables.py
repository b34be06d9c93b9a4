"""Formats results as a table for the terminal, as Markdown, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from mmgen.progress import table

from .flops import NAIVE, OURS
from .timing import NAIVE_IMAGES, Ratio, Result

NOTABLE = 0.15  # a ratio farther from the counted one needs an explanation
HEADER = ("", "system", "ms", "spread", "times ours", "lowest-highest", "counted", "gap", "slots", "M mul-adds")


def rows_of_results(results: Sequence[Result]) -> list[tuple[str, ...]]:
    """One row per system and case; only the first row of a case names it."""
    ours = {result.case: result for result in results if result.system == OURS}
    lines: list[tuple[str, ...]] = []
    previous_case = None
    for result in results:
        ratio = Ratio.of(result, ours[result.case])
        is_ours = result.system == OURS
        comparison = (
            ("1", "", "1", "")
            if is_ours
            else (
                f"{ratio.measured:.2f}",
                f"{ratio.low:.2f}-{ratio.high:.2f}",
                f"{ratio.counted:.2f}",
                f"{ratio.gap:+.0%}{' *' if abs(ratio.gap) > NOTABLE else ''}",
            )
        )
        work = (f"{result.work.slots:.1f}", f"{result.work.multiply_adds / 1e6:,.0f}")
        lines.append(
            (
                "" if result.case == previous_case else result.case,
                result.system,
                f"{1000 * result.median:,.1f}",
                f"{result.spread:.0%}",
                *comparison,
                *work,
            )
        )
        previous_case = result.case
    return lines


def notes(settings: dict, unit: str) -> list[str]:
    """Lines that explain the table's numbers."""
    shape = settings["shape"]
    lines = [
        f"{_count(shape['layers'], 'layer')}, {shape['width']} wide, {shape['vocabulary']:,} words; prefix of "
        f"{2 + shape['regions'] + shape['caption']} slots; "
        f"{settings['tokens']} tokens per text, including the end token; batches of "
        f"{_count(settings['batch'], 'image')}; "
        f"{settings['precision']}{', compiled' if settings['compile'] else ''}",
        f"{settings['accelerator'] or settings['processor']}, {_count(settings['threads'], 'thread')}; torch "
        f"{settings['torch']}, transformers {settings['transformers']}",
        f"ms {unit}: median of {_count(settings['rounds'], 'round')}, systems in turn; "
        "spread: (slowest - fastest) / median",
        f"times ours: median of the ratios of each round; counted: ratio of multiply-adds; * more than {NOTABLE:.0%} "
        "apart",
    ]
    if NAIVE in settings["systems"]:
        lines.append(
            f"{NAIVE}: measured on {_count(min(NAIVE_IMAGES, settings['batch']), 'image')} with one question each, "
            "scaled to one question"
        )
    return lines


def _count(number: int, noun: str) -> str:
    """`1 layer`, `12 layers`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def plain(results: Sequence[Result], settings: dict, unit: str) -> str:
    """Table and notes for a terminal or a text file."""
    return "\n".join([table([HEADER, *rows_of_results(results)], texts=2), "", *notes(settings, unit)])


def markdown(results: Sequence[Result], settings: dict, unit: str) -> str:
    """Table and notes as Markdown."""
    return f"{markdown_table(HEADER, rows_of_results(results))}\n\n" + "\n".join(
        f"- {_escape(note)}" for note in notes(settings, unit)
    )


def markdown_table(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    return table([header, *(tuple(map(_escape, row)) for row in body)], texts=2)


def _escape(text: str) -> str:
    return text.replace("*", "\\*")


def as_json(results: Sequence[Result], settings: dict) -> dict:
    """Settings, seconds of every round, ratios and counted work."""
    ours = {result.case: result for result in results if result.system == OURS}
    result_rows = []
    for result in results:
        ratio = Ratio.of(result, ours[result.case])
        result_rows.append(
            asdict(result)
            | {"median": result.median, "spread": result.spread, "times_ours": asdict(ratio) | {"gap": ratio.gap}}
        )
    return {"settings": settings, "results": result_rows}
