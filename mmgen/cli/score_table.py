"""How `mmgen score` shows scores: the table, its notes, the JSON file, and a row for every example."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..progress import number, table
from .score_request import ScoreRequest

if TYPE_CHECKING:
    from ..runs.rescore import Rescored
    from ..scoring import Comparison


def format_table(comparison: Comparison, systems) -> str:
    """The table, with one row per metric."""
    names = [system.name for system in systems] + (["difference"] if len(systems) == 2 else [])
    rows = [["metric"]]
    for name in names:
        rows[0] += [name if len(names) > 1 else "value", "95 %"]
        rows[0] += [_oracle_name(systems, name)] if name in comparison.oracle else []
    rows[0] += ["p"] if comparison.probabilities else []
    for metric in comparison.values[names[0]]:
        row = [metric]
        for name in names:
            span = comparison.intervals.get(name, {}).get(metric)
            row += [
                number(comparison.values[name].get(metric)),
                "-" if span is None else " to ".join(map(number, span)),
            ]
            row += [number(comparison.oracle[name].get(metric))] if name in comparison.oracle else []
        row += (
            [f"{comparison.probabilities[metric]:.3f}" if metric in comparison.probabilities else "-"]
            if comparison.probabilities
            else []
        )
        rows.append(row)
    return table(rows)


def _oracle_name(systems, name: str) -> str:
    texts = next(system.texts for system in systems if system.name == name)
    return f"oracle@{max(map(len, texts))}"


def notes(comparison: Comparison, systems, count: int, total: int, request: ScoreRequest, texts: bool = True):
    """The lines below the table. `texts`: whether texts were scored; texts have references per image or question."""
    per, resamples, corpus = request.per, request.resamples, request.corpus_intervals
    yield ""
    if len(systems) == 2:
        test_names = {
            "bootstrap": "paired bootstrap, two-sided",
            "jackknife": "paired jackknife, two-sided t-test over 20 blocks",
            "randomisation": f"approximate randomisation, two-sided, {request.randomisations} shuffles",
        }
        names = {
            test: ", ".join(name for name, metric_test in comparison.tests.items() if metric_test == test)
            for test in test_names
        }
        tests = [how + f" for {names[test]}" * (test != "bootstrap") for test, how in test_names.items() if names[test]]
        yield f"difference: {systems[0].name} minus {systems[1].name}" + (f"; p: {'; '.join(tests)}" if tests else "")
    left = f" of {total}" if total != count else ""
    yield (
        f"{count}{left} examples"
        + f", references per {per}" * texts
        + (
            "; do not compare these scores with scores per image: a text counts once for every question of its image"
            if per == "question"
            else ""
        )
    )
    yield from comparison.notes
    intervals = comparison.intervals.get(systems[0].name, {})
    missing = [
        metric
        for metric, value in comparison.values[systems[0].name].items()
        if value is not None and metric not in intervals
    ]
    if resamples and not intervals:
        yield "no intervals: all examples have the same image, so the variation between images is unknown"
    elif resamples:
        yield f"95 %: bootstrap over examples, {resamples} times" + "; corpus scores by the jackknife, 20 blocks" * (
            corpus and not missing
        )
        if missing:
            advice = "the jackknife needs 20 images" if corpus else "use --corpus-intervals (slower)"
            yield f"no interval for {', '.join(missing)}: not a mean over examples; {advice}"
    if comparison.oracle:
        yield "oracle: the best text of each example, chosen by the metric"


def write(out: Path, comparison: Comparison, ids: list[str]) -> None:
    """Write the JSON file of a comparison: scores, notes, and the scores of every example."""
    from dataclasses import asdict

    from ..files import write_json

    per_example = {system: _by_example(ids, columns) for system, columns in comparison.per_example.items()}
    write_json(out, {**asdict(comparison), "per_example": per_example})


def write_rows(out: Path, rescored: Rescored) -> None:
    """Write the scores of a run's rows: values, notes, and the scores of every example."""
    from ..files import write_json

    rows = {
        label: {
            "values": dict(scores.values),
            "notes": list(scores.notes),
            "per_example": _by_example(rescored.ids[label], scores.per_example),
        }
        for label, scores in rescored.rows.items()
    }
    write_json(out, rows)


def _by_example(ids: Sequence[str], columns: Mapping[str, Sequence[float | None]]) -> list[dict[str, Any]]:
    """The scores of every example with its id."""
    return [
        {"id": example_id, **{name: values[place] for name, values in columns.items()}}
        for place, example_id in enumerate(ids)
    ]
