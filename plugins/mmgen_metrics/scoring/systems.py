"""One or two systems, each with a prediction for every example: their scores, intervals, and difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mmgen.configs import LIKELIHOOD, MetricConfig
from mmgen.errors import DataError
from mmgen.evaluation.score import build_metric, score_step
from mmgen.examples import Example, Generation, Prediction, Scores
from mmgen.progress import Progress
from mmgen.recipe.load import select_parts
from mmgen.registry import Registry
from mmgen.scoring.compare import cells_of, difference_row
from mmgen.scoring.intervals import RESAMPLES, groups_of, intervals
from mmgen.scoring.table import Row, ScoreTable


def metrics(names: Sequence[str], sets: Sequence[str], registry: Registry) -> dict[str, MetricConfig]:
    """Metrics by name; without names, all installed metrics that judge texts only and need no settings or pictures.
    `sets`: overrides such as "captioneval.meteor=false". Raises DataError for a metric that judges likelihoods."""
    metric_names = list(names) or [
        name
        for name, part in registry.names("metric").items()
        if issubclass(part.config, MetricConfig)
        and not part.config.needs_pictures
        and part.config.judges == {"text"}
        and not any(info.is_required() for info in part.config.model_fields.values())
    ]
    selected = select_parts(MetricConfig, {}, metric_names, sets, registry)
    for name, config in selected.items():
        if LIKELIHOOD in config.judges:
            raise DataError(
                f"--metric {name}: a file of texts has no log-probabilities of references; add the metric to [metrics] "
                "of the recipe and run it again, or use `mmgen likelihood`"
            )
    return selected


def compare(
    systems: Mapping[str, Sequence[Any]],
    examples: Sequence[Example],
    configs: Mapping[str, MetricConfig],
    *,
    resamples: int = RESAMPLES,
) -> tuple[ScoreTable, dict[str, Scores]]:
    """Score one system, or two systems on the same examples: a row for each, for two also their difference, first minus
    second; and the scores of each. Errors of metrics propagate.

    systems    name -> for every example a text, or the value of one prediction
    resamples  of the bootstrap, and shuffles of the randomisation; 0: no intervals and p
    """
    groups, scores_of = groups_of(examples), dict[str, Scores]()
    built = {name: build_metric(name, config) for name, config in configs.items()}
    for name, predictions in systems.items():
        answers = [
            Generation(example.id, value, (), 0.0) if isinstance(value, str) else Prediction(example.id, value, 0.0)
            for example, value in zip(examples, predictions, strict=True)
        ]
        scores_of[name] = score_step(name, answers, examples, built, Progress())
    rows = [
        Row((name,), cells_of([scores.values], intervals(scores, configs, groups, resamples)))
        for name, scores in scores_of.items()
    ]
    columns = tuple(dict.fromkeys(name for row in rows for name in row.cells))
    notes = dict.fromkeys(note for scores in scores_of.values() for note in scores.notes)
    if len(systems) == 2:
        first, second = ([scores] for scores in scores_of.values())
        rows.append(difference_row(("difference",), first, second, configs, groups, resamples))
    return ScoreTable(columns, tuple(rows), tuple(notes), heads=("metric",), upright=True), scores_of
