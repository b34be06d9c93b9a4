"""Build metrics, score texts or predictions, merge metrics; read and write scores.json. The scores of people's texts
and of chance are computed once for each metric and data set, and kept in a run's folder."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from pydantic import TypeAdapter

from ..configs import MetricConfig
from ..data.datasets import ScoredOn, pictures_of
from ..data.part_checks import check_scores
from ..data.seeds import share_a_picture
from ..errors import DataError, MmgenError, RunError
from ..examples import Example, Generation, Scores
from ..files import write_json
from ..parts import Dataset, Metric, Picture
from ..progress import Progress
from ..recipe.tables import Recipe
from ..storage.generations import parse
from ..storage.run_folder import RunFolder
from .collapse import collapsed

CPU = torch.device("cpu")
SCORES = TypeAdapter(Scores)
FILE = "references.json"  # in a run's folder: a metric and the data of steps -> scores
REFERENCES = TypeAdapter(dict[str, Scores])


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
    name: str,
    answers: Sequence[Any],
    examples: Sequence[Example],
    metrics: Mapping[str, Metric],
    progress: Progress,
    likelihoods: Mapping[str, Sequence[Any]] | None = None,
) -> Scores:
    """Scores of a step's texts or predictions, with a note on texts that are nearly all the same or empty.
    `likelihoods`: what the metrics of these names judge instead. Raises RunError for answers to other examples."""
    scores = dict[str, Scores]()
    if [answer.id for answer in answers] != [example.id for example in examples]:
        raise RunError(f"{name}: the ids differ from those of the data set's examples; run again with --fresh")
    with progress.task(f"{name}: scoring", len(metrics)) as advance:
        for metric, built in metrics.items():
            judged = (likelihoods or {}).get(metric, answers)
            scores[metric] = check_scores(metric, built.score(judged, examples), examples)
            advance()
    merged, remark = merge_metrics(scores), collapsed([text.text for text in answers if isinstance(text, Generation)])
    return replace(merged, notes=(*merged.notes, f"{name}: {remark}")) if remark else merged


def write_scores(folder: Path, scores: Scores) -> None:
    """`scores.json` in a folder of texts; `read` reads it."""
    write_json(folder / "scores.json", SCORES.dump_python(scores, mode="json", exclude_defaults=True))


def read(folder: Path) -> Scores:
    """The scores in a folder of texts. Raises RunError for a missing or damaged file."""
    return parse(SCORES, folder / "scores.json")


def merge_metrics(scores_by_metric: Mapping[str, Scores]) -> Scores:
    """Merge the scores of all metrics, without repeated notes. A column that several metrics have becomes one column
    per metric, "METRIC.column"."""
    count = Counter(column for scores in scores_by_metric.values() for column in {*scores.values, *scores.per_example})
    values, per_example, sums, notes = dict[str, Any](), dict[str, Any](), dict[str, Any](), dict[str, None]()
    for metric, scores in scores_by_metric.items():
        names = {column: column if times == 1 else f"{metric}.{column}" for column, times in count.items()}
        values |= {names[column]: value for column, value in scores.values.items()}
        per_example |= {names[column]: value for column, value in scores.per_example.items()}
        sums |= {f"{metric}/{name}": rows for name, rows in scores.sums.items()}
        notes |= dict.fromkeys(scores.notes)
    return Scores(values, per_example, tuple(notes), sums)


def reference_scores(
    recipe: Recipe, steps: Iterable[str], data: ScoredOn, folder: Path, metrics: Mapping[str, Metric] | None = None
) -> dict[str, dict[str, Scores]]:
    """Step -> metric -> the scores of people's texts, and those of chance as "chance_COLUMN", kept in the run's folder.
    `metrics`: those that are built; one that needs pictures is left out unless it is built or its scores are kept.
    Raises RunError for a damaged file, and the metrics' errors."""
    file, metrics = folder / FILE, metrics or {}
    known = parse(REFERENCES, file) if file.exists() else {}
    saved, by_step = len(known), dict[str, dict[str, Scores]]()
    data_seen = RunFolder(folder).fingerprint()
    for step in steps:
        own, writes, by_step[step] = recipe.scored_data(step), recipe.makes_texts(step), {}
        for name, config in recipe.judging(step).items():
            key = f"{name} {config.model_dump_json()} of {own and own.model_dump_json()} {data_seen}, texts: {writes}"
            if key not in known and (name in metrics or not config.needs_pictures):
                metric = metrics.get(name) or build_metric(name, config)
                known[key] = _score(name, config, metric, data.scored_by(step), writes)
            if key in known:
                by_step[step][name] = known[key]
    if len(known) > saved:
        write_json(file, REFERENCES.dump_python(known, mode="json"))
    return by_step


def _score(name: str, config: MetricConfig, metric: Metric, examples: Sequence[Example], writes: bool) -> Scores:
    """The scores of people's texts and of chance. Where a metric has no chance of its own, references of other pictures
    score as chance."""
    people = check_scores(name, metric.references(examples) or Scores({}), examples)
    values, notes = dict(people.values), people.notes
    others = references_of_others(examples) if writes and config.judges_fit and not config.needs_device else []
    if others and not any(column.startswith("chance_") for column in values):
        with contextlib.suppress(MmgenError):  # scoring the steps reports it
            chance = check_scores(name, metric.score(others, examples), examples).values
            values |= {f"chance_{column}": value for column, value in chance.items()}
            notes = (f"chance of {name}: the reference of another picture for each example", *notes)
    return Scores(values, {}, notes)


def references_of_others(examples: Sequence[Example]) -> list[Generation]:
    """For each example the first reference of another one, without a picture in common; from the other half of the
    examples, since neighbours may be alike. Empty if an example has no such other."""
    half, texts = len(examples) // 2, list[Generation]()
    for place, example in enumerate(examples):
        others = (examples[(place + half + step) % len(examples)] for step in range(len(examples)))
        other = next((other for other in others if other.targets and not share_a_picture(example, other)), None)
        if other is None:
            return []
        texts.append(Generation(example.id, other.targets[0], (), 0.0))
    return texts
