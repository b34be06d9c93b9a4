"""Score: what the metrics say of a step's texts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..data.checked import score_with
from ..errors import RunError
from ..files import read_table, write_json
from ..parts import Metric
from ..progress import Progress
from ..tensors import Example, Generation, Prediction, Scores


def score(
    name: str,
    texts: Sequence[list[Generation]],
    examples: Sequence[Example],
    metrics: Mapping[str, Metric],
    folder: Path,
    progress: Progress,
) -> Scores:
    """What the metrics say of the best text of every example. `folder`: where the texts are from. Raises RunError for
    texts about other examples."""
    best = [generations[0] for generations in texts]
    return score_predictions(name, best, examples, metrics, folder / "generations.jsonl", progress)


def score_predictions(
    name: str,
    predictions: Sequence[Generation] | Sequence[Prediction],
    examples: Sequence[Example],
    metrics: Mapping[str, Metric],
    file: Path,
    progress: Progress,
) -> Scores:
    """What the metrics say of one prediction for every example. `file`: where they are from. Raises RunError for
    predictions about other examples."""
    if [one.id for one in predictions] != [example.id for example in examples]:
        raise RunError(f"{file}: written for other examples than the data set holds now; run again with --fresh")
    with progress.task(f"{name}: scoring", len(metrics)) as advance:
        each: dict[str, Scores] = {}
        for called, metric in metrics.items():
            each[called] = score_with(called, metric, predictions, examples)
            advance()
    return gathered(each)


def write_scores(folder: Path, scores: Scores) -> None:
    """`scores.json` in a folder of texts; `read` reads it."""
    per_example = {name: list(values) for name, values in scores.per_example.items()}
    found = {"values": dict(scores.values), "notes": list(scores.notes), "per_example": per_example}
    write_json(folder / "scores.json", found)


def gathered(each: Mapping[str, Scores]) -> Scores:
    """All scores together. A column that several metrics give stands once for each of them, as "METRIC.column"."""
    count = Counter(column for scores in each.values() for column in {*scores.values, *scores.per_example})
    together = Scores({})
    for called, scores in each.items():
        named = {column: column if count[column] == 1 else f"{called}.{column}" for column in count}
        values = {named[column]: value for column, value in scores.values.items()}
        per_example = {named[column]: value for column, value in scores.per_example.items()}
        together = merge(together, Scores(values, per_example, scores.notes))
    return together


def merge(first: Scores, second: Scores) -> Scores:
    return Scores(
        {**first.values, **second.values},
        {**first.per_example, **second.per_example},
        tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def read(folder: Path) -> Scores:
    """The scores in a folder of texts. Raises RunError for a file that is missing or damaged."""
    path = folder / "scores.json"
    saved = read_table(path, values=dict, per_example=dict, notes=list)
    numbers = [
        *saved["values"].values(),
        *(value for values in saved["per_example"].values() if isinstance(values, list) for value in values),
    ]
    whole = all(value is None or (isinstance(value, int | float) and math.isfinite(value)) for value in numbers)
    if (
        not whole
        or not all(isinstance(values, list) for values in saved["per_example"].values())
        or not all(isinstance(note, str) for note in saved["notes"])
    ):
        raise RunError(f"{path}: damaged: its scores are no numbers; delete it and run again")
    return Scores(saved["values"], saved["per_example"], tuple(saved["notes"]))
