"""The command `mmgen score`: score files of predictions against references."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..commands import quiet, settings_option
from ..errors import MmgenError
from ..files import refuse_overwriting, write_json
from ..progress import table, tell

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from ..configs import MetricConfig
    from ..examples import Example, Scores
    from ..reading.results import ResultFiles
    from ..scoring.table import ScoreTable


MOST = 1_000_000  # resamples and shuffles; more take too long and add no precision


@click.command()
@click.argument("predictions", metavar="PREDICTIONS", type=click.Path(path_type=Path))
@click.option(
    "--references",
    required=True,
    type=click.Path(path_type=Path),
    help="A file of COCO captions or VQA questions, JSONL or JSON; or a recipe (.toml) or run folder, whose "
    "data set has the references.",
)
@click.option("--profile", help="The profile of the recipe in --references.")
@click.option("--split", help="The split of that recipe's data set; by default its evaluation split.")
@click.option("--step", help="Use the data set of this step of that recipe, if the step has its own.")
@click.option(
    "--metric",
    "names",
    multiple=True,
    help="The metric to use; by default all installed metrics for texts that need no settings. May be repeated.",
)
@settings_option("METRIC.KEY=VALUE", "Set one key of a metric; VALUE as in TOML.")
@click.option(
    "--against",
    type=click.Path(path_type=Path),
    help="Other predictions for the same examples; adds the paired difference.",
)
@click.option("--partial", is_flag=True, help="Score only examples with both a prediction and references.")
@click.option(
    "--resamples",
    default=1000,
    show_default=True,
    type=click.IntRange(0, MOST),
    help="Bootstrap resamples for intervals, and shuffles for p of corpus scores; 0 for neither.",
)
@click.option(
    "--seed",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="Random seed of the bootstrap and the shuffles.",
)
@click.option(
    "--json",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write all results, with the scores of every example, to this file.",
)
def score(
    predictions: Path,
    references: Path,
    profile: str | None,
    split: str | None,
    step: str | None,
    names: tuple[str, ...],
    sets: tuple[str, ...],
    against: Path | None,
    partial: bool,
    resamples: int,
    seed: int,
    out: Path | None,
) -> None:
    """Score PREDICTIONS: JSONL or JSON of {"id": ..., "text": ...}, COCO results, or a file that mmgen wrote;
    or results in the published format of a task, with --metric for the task's metric.

    An id may have several texts: the first one counts.
    """
    quiet()
    from .. import scoring
    from ..progress import Bars
    from ..registry import installed

    refuse_overwriting("--json", out, (predictions, references, against))
    if (profile or split or step) and not (references.is_dir() or references.suffix == ".toml"):
        raise MmgenError(
            f"--references {references}: is a file; --profile, --split and --step need a recipe or a run folder"
        )
    registry = installed()
    configs = scoring.metrics(names, sets, registry)
    kinds, form = _common_kinds(configs), _result_format(configs)
    expected = scoring.read_references(references, registry, profile, split, step, form)
    files = [predictions, *([against] if against else [])]
    read = [scoring.read_predictions(file, kinds, form, expected) for file in files]
    pairs = [scoring.pair(of_file, expected, file, partial) for of_file, file in zip(read, files, strict=True)]
    systems, examples = _read_systems(files, pairs)
    table_of_scores, scores = scoring.compare(
        systems, examples, configs, resamples=resamples, seed=seed, progress=Bars()
    )
    if out:  # before anything is printed: standard output may be closed
        write_json(out, _as_json(table_of_scores, scores, [example.id for example in examples]))
    lines = table_of_scores.by_score()
    if not against:
        lines[0][1] = "value"
    tell(table(lines))
    tell()
    left = f" of {len(expected)}" if len(expected) != len(examples) else ""
    tell(f"{len(examples)}{left} examples")
    for note in (*table_of_scores.notes, *_methods(table_of_scores, resamples)):
        tell(note)
    if out:
        tell(f"{out}: written")


def _methods(scores: ScoreTable, resamples: int) -> Iterator[str]:
    """Notes on intervals and p."""
    (first, *_), differences = scores.of("step").items(), scores.of("difference")
    spanned = {column for column, cell in first[1].items() if cell.interval}
    if resamples and not spanned:
        yield "no intervals: all examples have the same image, so the variation between images is unknown"
    elif resamples:
        yield f"95 %: bootstrap over the examples' images, {resamples} times"
        if without := ", ".join(column for column in first[1] if column not in spanned):
            yield f"no interval for {without}: not a function of sums over examples, or all are equal"
    if differences:
        names = [*scores.of("step")]
        test = "bootstrap for means, approximate randomisation for corpus scores" if resamples else ""
        yield f"difference: {names[0]} minus {names[1]}" + f"; p: two-sided, paired; {test}" * bool(test)


def _as_json(scored: ScoreTable, scores: Mapping[str, Scores], ids: Sequence[str]) -> dict[str, Any]:
    """All results: system (and "difference") -> score -> value, interval; score -> p; the scores of every example."""
    rows = {row.labels[0]: row.cells for row in scored.rows}
    difference = rows.get("difference", {})
    return {
        "values": {label: {name: cell.value for name, cell in cells.items()} for label, cells in rows.items()},
        "intervals": {
            label: {name: cell.interval for name, cell in cells.items() if cell.interval}
            for label, cells in rows.items()
        },
        "probabilities": {name: cell.p for name, cell in difference.items() if cell.p is not None},
        "per_example": {name: _by_example(ids, of) for name, of in scores.items()},
        "notes": scored.notes,
    }


def _by_example(ids: Sequence[str], scores: Scores) -> list[dict[str, Any]]:
    """The scores of every example with its id."""
    return [
        {"id": example_id, **{column: values[place] for column, values in scores.per_example.items()}}
        for place, example_id in enumerate(ids)
    ]


def _common_kinds(configs: Mapping[str, MetricConfig]) -> frozenset[str]:
    """The kinds of predictions that all of these metrics judge. Raises MmgenError if no kind is common."""
    first = next(iter(configs), "")
    kinds = frozenset({"text"}) if not configs else frozenset(configs[first].judges)
    for name, config in configs.items():
        if not kinds & config.judges:
            kind_names = [" or ".join(sorted(metric_kinds)) for metric_kinds in (kinds, config.judges)]
            raise MmgenError(
                f"--metric: {first} judges {kind_names[0]}, and {name} {kind_names[1]}; use one metric at a time"
            )
        kinds &= config.judges
    return kinds


def _result_format(configs: Mapping[str, MetricConfig]) -> ResultFiles | None:
    """The result files of the task of these metrics, or None. Raises MmgenError for metrics of several tasks."""
    forms = {form.name: form for config in configs.values() if (form := config.result_files())}
    if len(forms) > 1:
        raise MmgenError(
            f"--metric: the metrics are for several tasks ({', '.join(forms)}); use the metrics of one task at a time"
        )
    return next(iter(forms.values()), None)


def _read_systems(files: list[Path], pairs) -> tuple[dict[str, list[Any]], list[Example]]:
    """The systems, one per file, with texts for the examples that all files have; and these examples."""
    shared = set.intersection(*({example.id for example, _ in file_pairs} for file_pairs in pairs))
    if not shared:
        raise MmgenError(f"{' and '.join(map(str, files))}: the files have no example in common")
    pairs = [[(example, texts) for example, texts in file_pairs if example.id in shared] for file_pairs in pairs]
    system_names = _system_names(files)
    systems = {
        name: [texts[0] for _, texts in file_pairs] for name, file_pairs in zip(system_names, pairs, strict=True)
    }
    return systems, [example for example, _ in pairs[0]]


def _system_names(files: list[Path]) -> list[str]:
    """Names of the systems: the file, or the parts in which two paths differ."""
    from ..report.short_paths import tell_apart

    if len(files) == 1:
        return [str(files[0])]
    first, second = tell_apart(files)
    return [first, second if first != second else f"{second} (again)"]
