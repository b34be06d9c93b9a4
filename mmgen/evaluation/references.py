"""What people's texts and chance score: computed once for each metric and data set, kept in a run's folder."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from pydantic import TypeAdapter

from ..configs import MetricConfig
from ..data.datasets import ScoredOn
from ..data.part_checks import references_of, score_with
from ..data.seeds import share_a_picture
from ..errors import MmgenError
from ..examples import Example, Generation, Scores
from ..files import write_json
from ..parts import Metric
from ..recipe.tables import Recipe
from ..storage.generations import parse
from .score import as_json, build_metric

FILE = "references.json"  # in a run's folder: key of a metric and of examples -> scores
ALL = TypeAdapter(dict[str, Scores])


def reference_scores(
    recipe: Recipe,
    steps: Iterable[str],
    data: ScoredOn,
    folder: Path | None,
    metrics: Mapping[str, Metric] | None = None,
    save: bool = True,
) -> dict[str, dict[str, Scores]]:
    """Step -> metric -> the scores of people's texts, and those of chance as "chance_COLUMN". The steps are scored.

    folder   the run's, which may have them
    metrics  those that are built already; one that needs pictures is left out unless it is built or its scores are kept
    save     whether the folder gets new scores

    Raises RunError for a damaged file, and the metrics' errors."""
    file = folder / FILE if folder else None
    kept = parse(ALL, file) if file and file.exists() else {}
    known, by_step = dict(kept), dict[str, dict[str, Scores]]()
    for step in steps:
        examples, writes, by_step[step] = data.scored_by(step), recipe.makes_texts(step), {}
        about = repr([writes, *((example.id, example.targets) for example in examples)])
        for name, config in recipe.judging(step).items():
            key = hashlib.sha256(f"{name} {config.model_dump_json()} {about}".encode()).hexdigest()
            if key not in known:
                metric = (metrics or {}).get(name)
                if metric is None and config.needs_pictures:
                    continue
                metric = metric or build_metric(name, config)
                known[key] = _score(name, config, metric, examples, writes)
            by_step[step][name] = known[key]
    if file and save and known != kept:
        write_json(file, {key: as_json(scores) for key, scores in known.items()})
    return by_step


def _score(name: str, config: MetricConfig, metric: Metric, examples: Sequence[Example], writes: bool) -> Scores:
    """The scores of people's texts and of chance. Where a metric has no chance of its own, references of other pictures
    score as chance."""
    people = references_of(name, metric, examples) or Scores({})
    others = references_of_others(examples) if writes and config.judges_fit and not config.needs_device else []
    chance = Scores({})
    if others and not any(column.startswith("chance_") for column in people.values):
        with contextlib.suppress(MmgenError):  # scoring the steps reports it
            values = score_with(name, metric, others, examples).values
            note = f"chance of {name}: the reference of another picture for each example"
            chance = Scores({f"chance_{column}": value for column, value in values.items()}, {}, (note,))
    return Scores({**people.values, **chance.values}, {}, (*chance.notes, *people.notes))


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
