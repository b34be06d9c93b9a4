"""What the score command shows and writes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ..progress import number, table
from .score_request import ScoreRequest

if TYPE_CHECKING:
    from ..runs.rescore import Rescored
    from ..scoring import Comparison


def shown(found: Comparison, systems) -> str:
    """The table, a row a metric."""
    names = [system.name for system in systems] + (["difference"] if len(systems) == 2 else [])
    rows = [["metric"]]
    for name in names:
        rows[0] += [name if len(names) > 1 else "value", "95 %"]
        rows[0] += [_oracle_name(systems, name)] if name in found.oracle else []
    rows[0] += ["p"] if found.probabilities else []
    for metric in found.values[names[0]]:
        row = [metric]
        for name in names:
            span = found.intervals.get(name, {}).get(metric)
            row += [number(found.values[name].get(metric)), "-" if span is None else " to ".join(map(number, span))]
            row += [number(found.oracle[name].get(metric))] if name in found.oracle else []
        row += (
            [f"{found.probabilities[metric]:.3f}" if metric in found.probabilities else "-"]
            if found.probabilities
            else []
        )
        rows.append(row)
    return table(rows)


def _oracle_name(systems, name: str) -> str:
    texts = next(system.texts for system in systems if system.name == name)
    return f"oracle@{max(map(len, texts))}"


def notes(found: Comparison, systems, count: int, total: int, request: ScoreRequest, texts: bool = True):
    """The lines below the table. `texts`: whether texts were scored, which have references by image or question."""
    per, resamples, corpus = request.per, request.resamples, request.corpus_intervals
    yield ""
    if len(systems) == 2:
        told = {
            "bootstrap": "paired bootstrap, two-sided",
            "jackknife": "paired jackknife, two-sided t-test over 20 blocks",
            "randomisation": f"approximate randomisation, two-sided, {request.randomisations} shuffles",
        }
        names = {test: ", ".join(name for name, own in found.tests.items() if own == test) for test in told}
        tests = [how + f" for {names[test]}" * (test != "bootstrap") for test, how in told.items() if names[test]]
        yield f"difference: {systems[0].name} minus {systems[1].name}" + (f"; p: {'; '.join(tests)}" if tests else "")
    left = f" of {total}" if total != count else ""
    yield (
        f"{count}{left} examples"
        + f", references per {per}" * texts
        + (
            "; not to be compared with scores per image, and a text counts once for every question of its image"
            if per == "question"
            else ""
        )
    )
    yield from found.notes
    own = found.intervals.get(systems[0].name, {})
    missing = [
        metric for metric, value in found.values[systems[0].name].items() if value is not None and metric not in own
    ]
    if resamples and not own:
        yield "no intervals: the examples are all of one image, and nothing tells how much others would vary"
    elif resamples:
        yield f"95 %: bootstrap over examples, {resamples} times" + "; corpus scores by the jackknife, 20 blocks" * (
            corpus and not missing
        )
        if missing:
            why = "the jackknife takes 20 images" if corpus else "--corpus-intervals scores again and again for one"
            yield f"no interval for {', '.join(missing)}: no mean over examples; {why}"
    if found.oracle:
        yield "oracle: for every example the text that the metric itself likes best"


def write(out: Path, found: Comparison, ids: list[str]) -> None:
    from dataclasses import asdict

    from ..files import write_json

    each = {
        system: [
            {"id": own, **{name: values[place] for name, values in columns.items()}} for place, own in enumerate(ids)
        ]
        for system, columns in found.per_example.items()
    }
    write_json(out, {**asdict(found), "per_example": each})


def write_rows(out: Path, found: Rescored) -> None:
    """Scores of a run's rows: values and notes, and every example's."""
    from ..files import write_json

    rows = {
        label: {
            "values": dict(scores.values),
            "notes": list(scores.notes),
            "per_example": [
                {"id": own, **{name: values[place] for name, values in scores.per_example.items()}}
                for place, own in enumerate(found.ids[label])
            ],
        }
        for label, scores in found.rows.items()
    }
    write_json(out, rows)
