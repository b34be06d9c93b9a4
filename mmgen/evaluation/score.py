"""Build metrics, find the data they score, score texts or predictions, merge metrics; read and write scores.json."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch

from ..configs import MetricConfig
from ..data.datasets import ScoredOn, pictures_of
from ..data.part_checks import score_with
from ..errors import DataError, RunError
from ..files import read_table, write_json
from ..parts import Dataset, Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..registry import Qualified, built, part_calls
from ..tensors import Example, Generation, Prediction, Scores

CPU = torch.device("cpu")


def build_metric(name: str, config: MetricConfig, data: Iterable[Dataset] = (), device: torch.device = CPU) -> Metric:
    """A metric of a run, prepared. `data`: data sets with the pictures of its examples. Raises the metric's
    errors, and DataError if it needs pictures and `data` is empty."""
    datasets = list(data)
    if config.needs_pictures and not datasets:
        raise DataError(f"metrics.{name}: needs the pictures of a run; use `mmgen score RUN`")
    metric = built(config, config.build, f"metrics.{name}")

    def pictures(examples: Sequence[Example]) -> dict[str, Picture]:
        return {key: picture for dataset in datasets for key, picture in pictures_of(dataset, examples).items()}

    if config.needs_pictures or config.needs_device:
        with part_calls(Qualified(f"metrics.{name}", "metric", type(config)), "prepare"):
            metric.prepare(pictures, device)
    return metric


def datasets_of(recipe: Recipe, data: ScoredOn) -> list[Dataset]:
    """The data sets that the steps of a run are scored on, each once."""
    steps = [step for step, settings in recipe.steps.items() if settings.evaluate]
    return [*{id(dataset): dataset for dataset in map(data.dataset_of, steps)}.values()]


def score(
    name: str,
    texts: Sequence[list[Generation]],
    examples: Sequence[Example],
    metrics: Mapping[str, Metric],
    folder: Path,
    progress: Progress,
) -> Scores:
    """Scores of the best text of each example. `folder`: the folder of the texts. Raises RunError if the ids of texts
    and examples differ."""
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
    """Scores of one prediction for each example. `file`: the file of the predictions. Raises RunError if the ids of
    predictions and examples differ."""
    if [prediction.id for prediction in predictions] != [example.id for example in examples]:
        raise RunError(f"{file}: the ids differ from those of the data set's examples; run again with --fresh")
    with progress.task(f"{name}: scoring", len(metrics)) as advance:
        scores_by_metric: dict[str, Scores] = {}
        for metric_name, metric in metrics.items():
            scores_by_metric[metric_name] = score_with(metric_name, metric, predictions, examples)
            advance()
    return merge_metrics(scores_by_metric)


def write_scores(folder: Path, scores: Scores) -> None:
    """`scores.json` in a folder of texts; `read` reads it."""
    per_example = {name: list(values) for name, values in scores.per_example.items()}
    saved = {"values": dict(scores.values), "notes": list(scores.notes), "per_example": per_example}
    write_json(folder / "scores.json", saved)


def merge_metrics(scores_by_metric: Mapping[str, Scores]) -> Scores:
    """Merge the scores of all metrics. A column that several metrics have becomes one column per metric,
    "METRIC.column"."""
    count = Counter(column for scores in scores_by_metric.values() for column in {*scores.values, *scores.per_example})
    merged = Scores({})
    for metric_name, scores in scores_by_metric.items():
        named = {column: column if count[column] == 1 else f"{metric_name}.{column}" for column in count}
        values = {named[column]: value for column, value in scores.values.items()}
        per_example = {named[column]: value for column, value in scores.per_example.items()}
        merged = merge(merged, Scores(values, per_example, scores.notes))
    return merged


def merge(first: Scores, second: Scores) -> Scores:
    """The scores of two metrics as one, without repeated notes."""
    return Scores(
        {**first.values, **second.values},
        {**first.per_example, **second.per_example},
        tuple(dict.fromkeys((*first.notes, *second.notes))),
    )


def read(folder: Path) -> Scores:
    """The scores in a folder of texts. Raises RunError for a missing or damaged file."""
    path = folder / "scores.json"
    saved = read_table(path, values=dict, per_example=dict, notes=list)
    numbers = [
        *saved["values"].values(),
        *(value for values in saved["per_example"].values() if isinstance(values, list) for value in values),
    ]
    finite = all(value is None or (isinstance(value, int | float) and math.isfinite(value)) for value in numbers)
    if (
        not finite
        or not all(isinstance(values, list) for values in saved["per_example"].values())
        or not all(isinstance(note, str) for note in saved["notes"])
    ):
        raise RunError(f"{path}: damaged: scores must be numbers; delete the file and run again")
    return Scores(saved["values"], saved["per_example"], tuple(saved["notes"]))
