"""Build metrics, find the data they score, score texts or predictions, merge metrics; read and write scores.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from ..configs import MetricConfig
from ..data.datasets import ScoredOn, pictures_of
from ..data.part_checks import check_scores
from ..errors import DataError, RunError
from ..examples import Example, Generation, Prediction, Scores
from ..files import write_json
from ..parts import Dataset, Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.generations import parse

CPU = torch.device("cpu")
SCORES = TypeAdapter(Scores)


def build_metric(name: str, config: MetricConfig, data: Iterable[Dataset] = (), device: torch.device = CPU) -> Metric:
    """A metric of a run, prepared. `data`: data sets with the pictures of its examples. Raises the metric's
    errors, and DataError if it needs pictures and `data` is empty."""
    datasets = list(data)
    if config.needs_pictures and not datasets:
        raise DataError(f"metrics.{name}: needs the pictures of a run; use `mmgen score RUN`")
    metric = config.build()

    def pictures(examples: Sequence[Example]) -> dict[str, Picture]:
        return {key: picture for dataset in datasets for key, picture in pictures_of(dataset, examples).items()}

    if config.needs_pictures or config.needs_device:
        metric.prepare(pictures, device)
    return metric


def build_metrics(
    recipe: Recipe, steps: Sequence[str], data: ScoredOn, device: torch.device = CPU
) -> dict[str, Metric]:
    """The metrics that score these steps on their data, by name; each is built once, since some start a program."""
    datasets = {id(dataset): dataset for dataset in map(data.dataset_of, steps)}.values()
    configs = {name: config for step in steps for name, config in recipe.judging(step).items()}
    return {name: build_metric(name, config, datasets, device) for name, config in configs.items()}


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
    scores_by_metric: dict[str, Scores] = {}
    with progress.task(f"{name}: scoring", len(metrics)) as advance:
        for metric_name, metric in metrics.items():
            scores_by_metric[metric_name] = check_scores(metric_name, metric.score(predictions, examples), examples)
            advance()
    return merge_metrics(scores_by_metric)


def write_scores(folder: Path, scores: Scores) -> None:
    """`scores.json` in a folder of texts; `read` reads it."""
    write_json(folder / "scores.json", as_json(scores))


def read(folder: Path) -> Scores:
    """The scores in a folder of texts. Raises RunError for a missing or damaged file."""
    return parse(SCORES, folder / "scores.json")


def as_json(scores: Scores) -> dict[str, Any]:
    """Scores as a JSON object."""
    per_example = {name: list(values) for name, values in scores.per_example.items()}
    sums = {"sums": {name: [*rows] for name, rows in scores.sums.items()}} if scores.sums else {}
    return {"values": dict(scores.values), "notes": list(scores.notes), "per_example": per_example, **sums}


def merge_metrics(scores_by_metric: Mapping[str, Scores]) -> Scores:
    """Merge the scores of all metrics. A column that several metrics have becomes one column per metric,
    "METRIC.column"."""
    count = Counter(column for scores in scores_by_metric.values() for column in {*scores.values, *scores.per_example})
    merged = Scores({})
    for metric, scores in scores_by_metric.items():
        names = {column: column if times == 1 else f"{metric}.{column}" for column, times in count.items()}
        own = Scores(
            {names[column]: value for column, value in scores.values.items()},
            {names[column]: value for column, value in scores.per_example.items()},
            scores.notes,
            {f"{metric}/{name}": rows for name, rows in scores.sums.items()},
        )
        merged = merge(merged, own)
    return merged


def merge(first: Scores, second: Scores) -> Scores:
    """The scores of two metrics as one, without repeated notes."""
    return Scores(
        {**first.values, **second.values},
        {**first.per_example, **second.per_example},
        tuple(dict.fromkeys((*first.notes, *second.notes))),
        {**first.sums, **second.sums},
    )
