"""Build metrics, find the data they score, score texts or predictions, merge metrics; read and write scores.json."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import torch
from pydantic import TypeAdapter

from ..configs import MetricConfig
from ..data.datasets import ScoredOn, pictures_of
from ..data.part_checks import check_scores
from ..errors import DataError, RunError
from ..examples import Example, Scores
from ..files import write_json
from ..parts import Dataset, Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.generations import parse
from ..storage.run_folder import RunFolder
from .answers import read_answers

CPU = torch.device("cpu")
SCORES = TypeAdapter(Scores)


def build_metric(name: str, config: MetricConfig, data: Iterable[Dataset] = (), device: torch.device = CPU) -> Metric:
    """A metric of a run, prepared. `data`: data sets with the pictures of its examples. Raises the metric's
    errors, and DataError if it needs pictures and `data` is empty."""
    datasets = list(data)
    if config.needs_pictures and not datasets:
        raise DataError(f"metrics.{name}: needs the pictures of a run; add it to [metrics] and run the recipe again")
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


def score_step(
    recipe: Recipe, step: str, folder: RunFolder, data: ScoredOn, metrics: Mapping[str, Metric], progress: Progress
) -> Scores:
    """Scores of a step's texts or predictions, by the metrics that judge them. Raises RunError if their ids and those
    of the examples differ."""
    place, examples, scores = folder.step(step), data.scored_by(step), dict[str, Scores]()
    answers, judging = read_answers(recipe, step, place), recipe.judging(step)
    if [answer.id for answer in answers] != [example.id for example in examples]:
        raise RunError(f"{place}: the ids differ from those of the data set's examples; run again with --fresh")
    with progress.task(f"{step}: scoring", len(judging)) as advance:
        for name in judging:
            scores[name] = check_scores(name, metrics[name].score(answers, examples), examples)
            advance()
    return merge_metrics(scores)


def write_scores(folder: Path, scores: Scores) -> None:
    """`scores.json` in a folder of texts; `read` reads it."""
    write_json(folder / "scores.json", SCORES.dump_python(scores, mode="json", exclude_defaults=True))


def read(folder: Path) -> Scores:
    """The scores in a folder of texts. Raises RunError for a missing or damaged file."""
    return parse(SCORES, folder / "scores.json")


def merge_metrics(scores_by_metric: Mapping[str, Scores]) -> Scores:
    """Merge the scores of all metrics. A column that several metrics have becomes one column per metric,
    "METRIC.column"."""
    count = Counter(column for scores in scores_by_metric.values() for column in {*scores.values, *scores.per_example})
    merged = Scores({})
    for metric, scores in scores_by_metric.items():
        names = {column: column if times == 1 else f"{metric}.{column}" for column, times in count.items()}
        values = {names[column]: value for column, value in scores.values.items()}
        per_example = {names[column]: value for column, value in scores.per_example.items()}
        sums = {f"{metric}/{name}": rows for name, rows in scores.sums.items()}
        merged = merge(merged, Scores(values, per_example, scores.notes, sums))
    return merged


def merge(first: Scores, second: Scores) -> Scores:
    """The scores of two metrics as one, without repeated notes."""
    return Scores(
        {**first.values, **second.values},
        {**first.per_example, **second.per_example},
        tuple(dict.fromkeys((*first.notes, *second.notes))),
        {**first.sums, **second.sums},
    )
