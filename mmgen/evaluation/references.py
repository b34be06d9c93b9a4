"""What people's texts and chance score: computed once for each metric and data set, kept in a run's folder."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from ..configs import MetricConfig
from ..data.datasets import ScoredOn
from ..data.part_checks import check_scores
from ..data.seeds import share_a_picture
from ..errors import MmgenError
from ..examples import Example, Generation, Scores
from ..files import write_json
from ..parts import Metric
from ..recipe.tables import Recipe
from ..storage.generations import parse
from ..storage.run_folder import RunFolder
from .score import build_metric

FILE = "references.json"  # in a run's folder: a metric and the data of steps -> scores
ALL = TypeAdapter(dict[str, Scores])


def reference_scores(
    recipe: Recipe,
    steps: Iterable[str],
    data: ScoredOn,
    folder: Path | None,
    metrics: Mapping[str, Metric] | None = None,
) -> dict[str, dict[str, Scores]]:
    """Step -> metric -> the scores of people's texts, and those of chance as "chance_COLUMN". The steps are scored.

    folder   the run's, which may have them, and keeps them
    metrics  those that are built already; one that needs pictures is left out unless it is built or its scores are kept

    Raises RunError for a damaged file, and the metrics' errors."""
    file = folder / FILE if folder else None
    known = parse(ALL, file) if file and file.exists() else {}
    saved, by_step = len(known), dict[str, dict[str, Scores]]()
    data_seen = RunFolder(folder).fingerprint() if folder else None
    for step in steps:
        own, writes, by_step[step] = recipe.scored_data(step), recipe.makes_texts(step), {}
        for name, config in recipe.judging(step).items():
            key = f"{name} {config.model_dump_json()} of {own and own.model_dump_json()} {data_seen}, texts: {writes}"
            if key not in known:
                metric = (metrics or {}).get(name)
                if metric is None and config.needs_pictures:
                    continue
                known[key] = _score(name, config, metric or build_metric(name, config), data.scored_by(step), writes)
            by_step[step][name] = known[key]
    if file and len(known) > saved:
        write_json(file, ALL.dump_python(known, mode="json"))
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
