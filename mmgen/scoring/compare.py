"""Scores of one or two systems on the same examples: values, intervals, differences, the best of several texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from ..configs import MetricConfig
from ..data.part_checks import check_scores
from ..evaluation.collapse import collapsed
from ..evaluation.score import build_metric, merge, merge_metrics
from ..examples import Example, Generation, Prediction, Scores
from ..progress import Progress
from ..recipe.layers import settings_of
from ..recipe.load import part_from
from ..registry import Registry
from .intervals import RESAMPLES, differences, groups_of, intervals, summed
from .table import Cell, Row, ScoreTable

SELF_SCORES = "self-"  # prefix of scores that compare generated texts with each other; these have no best text
DIFFERENCE = "difference"


@dataclass(frozen=True)
class System:
    """The predictions of a named system, one list per example: texts, best first, or the value of one prediction."""

    name: str
    texts: Sequence[Sequence[Any]]


@dataclass(frozen=True)
class Comparison:
    """What `compare` found.

    table   a row for every system, followed by the best of its texts; for two systems also their difference, first
            minus second
    scores  system -> its scores, with the values of every example
    oracle  system with several texts -> score -> that of the best text of every example
    """

    table: ScoreTable
    scores: Mapping[str, Scores]
    oracle: Mapping[str, Mapping[str, float]]

    def _repr_html_(self) -> str:
        """The table for a notebook."""
        return self.table._repr_html_()


def metrics(names: Sequence[str], sets: Sequence[str], registry: Registry) -> dict[str, MetricConfig]:
    """Metrics by name; without names, all installed metrics that judge texts only and need no settings or pictures.
    `sets`: overrides such as "captioneval.meteor=false"."""
    metric_names = list(names) or [
        name
        for name, part in registry.names("metric").items()
        if issubclass(part.config, MetricConfig)
        and not part.config.needs_pictures
        and part.config.judges == {"text"}
        and not any(info.is_required() for info in part.config.model_fields.values())
    ]
    metric_settings = settings_of(sets, metric_names, "metric")
    return {
        name: part_from(MetricConfig, name, settings, registry, f"{name}.")
        for name, settings in metric_settings.items()
    }


def compare(
    systems: Sequence[System],
    examples: Sequence[Example],
    configs: Mapping[str, MetricConfig],
    *,
    seen: frozenset[str] | None = None,
    resamples: int = RESAMPLES,
    seed: int = 0,
    progress: Progress | None = None,
) -> Comparison:
    """Score one system, or two systems on the same examples. `seen`: training texts, for the share of unseen texts.
    `resamples`: of the bootstrap, and shuffles of the randomisation; 0: no intervals and p. Errors of metrics
    propagate."""
    judge, groups = _Judge(configs, examples, seen), groups_of(examples)
    rows, notes, scores_of = list[Row](), dict[str, None](), dict[str, Scores]()
    oracle = dict[str, Mapping[str, float]]()
    with (progress or Progress()).task("scoring", None, "passes") as advance:
        judge.advance = advance
        for system in systems:
            scores_of[system.name] = scores = judge(_best_texts(system))
            notes.update(dict.fromkeys(scores.notes))
            if judge.of_texts and (remark := collapsed(_best_texts(system))):
                notes[f"{system.name}: {remark}"] = None
            spans = intervals(scores, configs, groups, resamples, seed)
            known = {name: value for name, value in scores.values.items() if value is not None}
            rows.append(
                Row((system.name,), {name: Cell(value, interval=spans.get(name)) for name, value in known.items()})
            )
            if (count := max(map(len, system.texts))) > 1:
                oracle[system.name] = _score_oracle(judge, system, scores)
                best = {name: Cell(value) for name, value in oracle[system.name].items()}
                rows.append(Row((f"oracle@{count}",), best, "reference"))
    columns = tuple(dict.fromkeys(name for scores in scores_of.values() for name in scores.values))
    if len(systems) == 2:
        rows.append(
            difference_row(
                (DIFFERENCE,), [*scores_of.values()][:1], [*scores_of.values()][1:], configs, groups, resamples, seed
            )
        )
    return Comparison(ScoreTable(columns, tuple(rows), tuple(notes), heads=("metric",)), scores_of, oracle)


def difference_row(
    labels: tuple[str, ...],
    first: Sequence[Scores],
    second: Sequence[Scores],
    configs: Mapping[str, MetricConfig],
    groups: Sequence[str],
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Row:
    """First minus second, each the mean of its seeds, with intervals and p where the scores allow them. `configs`: the
    metrics of both, by name. `groups`: those of the examples of both."""
    sums = [[summed(scores, configs, len(groups)) for scores in system] for system in (first, second)]
    found, cells = differences(sums[0], sums[1], groups, resamples, seed), {}
    for column in first[0].values:
        values = [
            [value for scores in system if (value := scores.values.get(column)) is not None]
            for system in (first, second)
        ]
        if [*map(len, values)] == [len(first), len(second)]:
            span, p = found.get(column, (None, None))
            cells[column] = Cell(fmean(values[0]) - fmean(values[1]), interval=span, p=p)
    return Row(labels, cells, "difference")


class _Judge:
    """Scores predictions with all metrics."""

    def __init__(
        self, configs: Mapping[str, MetricConfig], examples: Sequence[Example], seen: frozenset[str] | None
    ) -> None:
        self.built = {name: build_metric(name, config) for name, config in configs.items()}
        self.of_texts = all(config.judges == {"text"} for config in configs.values())
        self.examples = examples
        self.seen = None if seen is None else {_letters_and_digits(text) for text in seen}
        self.advance = lambda: None

    def __call__(self, texts: Sequence[Any]) -> Scores:
        """Score one text or prediction value per example."""
        outputs = [_as_output(example.id, text) for example, text in zip(self.examples, texts, strict=True)]
        scores = {
            name: check_scores(name, metric.score(outputs, self.examples), self.examples)
            for name, metric in self.built.items()
        }
        merged = merge_metrics(
            {
                name: of_metric
                for name, of_metric in scores.items()
                if len(scores) == 1 or any(value is not None for value in of_metric.values.values())
            }
        )
        if self.seen is not None:
            unseen = [100.0 * (_letters_and_digits(text.value) not in self.seen) for text in outputs]
            merged = merge(merged, Scores({"unseen": fmean(unseen)}, {"unseen": unseen}))
        self.advance()
        return merged


def _as_output(example_id: str, value: Any) -> Any:
    """A `Generation` of a text, a `Prediction` of any other value."""
    return Generation(example_id, value, (), 0.0) if isinstance(value, str) else Prediction(example_id, value, 0.0)


def _letters_and_digits(text: str) -> str:
    """Letters and digits only, in lower case, so that two spellings of a question compare as equal."""
    return " ".join("".join(letter if letter.isalnum() else " " for letter in text.casefold()).split())


def _best_texts(system: System) -> list[Any]:
    return [texts[0] for texts in system.texts]


def _score_oracle(judge: _Judge, system: System, first: Scores) -> dict[str, float]:
    """Scores if a perfect choice picked, for every example, the text with the best per-example score of the metric."""
    ranks = max(map(len, system.texts))
    rounds = [[texts[min(rank, len(texts) - 1)] for texts in system.texts] for rank in range(ranks)]
    scores_by_rank = [first, *(judge(texts) for texts in rounds[1:])]
    best: dict[str, float] = {}
    for name in first.per_example:
        if not name.startswith(SELF_SCORES) and first.values.get(name) is not None:
            example_scores = [
                [scores.per_example[name][place] or 0.0 for scores in scores_by_rank]
                for place in range(len(system.texts))
            ]
            best_ranks = [max(range(ranks), key=row.__getitem__) for row in example_scores]
            value = judge([rounds[rank][place] for place, rank in enumerate(best_ranks)]).values[name]
            if value is not None:
                best[name] = value
    return best
