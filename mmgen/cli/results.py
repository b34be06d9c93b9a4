"""Commands that show results: report, compare, and score for files of predictions."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from ..commands import FILE, PATH, repeated, run_argument
from ..errors import MmgenError
from ..files import refuse_overwriting, write_json
from ..progress import Bars, table, tell


@click.command()
@run_argument
@click.option(
    "--pictures", default=200, show_default=True, type=click.IntRange(1, 5000), help="Number of test examples to show."
)
def report(run: Path, pictures: int) -> None:
    """Write the table, curves and pictures of a run into one HTML page.

    The page is RUN/report.html. For a folder of several seeds, it shows the first seed, and its table is over all
    seeds."""
    from ..runs.run import report_on

    tell(report_on(run, Bars(), pictures))


@click.command()
@click.argument("runs", nargs=-1, required=True, type=PATH)
@click.option("--rows", metavar="STEP,STEP", help="Compare two rows of one run, the first minus the second.")
@click.option("--columns", metavar="SCORE,...", help="The scores to show, in this order; by default all.")
@click.option("--digits", default=2, show_default=True, type=click.IntRange(0, 6), help="Decimals.")
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="Also write the scores (.csv) or the tables (.tex for LaTeX, .md) to this file.",
)
def compare(runs: tuple[Path, ...], rows: str | None, columns: str | None, digits: int, out: Path | None) -> None:
    """Compare the scores and recipes of several runs.

    RUNS are run folders, or folders of seeds (mean and spread). The output has the scores, their differences from the
    first run with 95 % intervals, and the differences between the recipes. A single run is shown alone; with --rows,
    two of its steps are compared, with p."""
    from .. import report
    from ..scoring.table import as_markdown, chosen, write

    first, _, second = (rows or "").partition(",")
    if rows and (not second or len(runs) != 1):
        raise click.UsageError("--rows: give one run and two of its steps, such as --rows image,image_frozen")
    tables = [report.compare_rows(runs[0], first, second)] if rows else report.compare(runs)
    if columns:
        tables = chosen(tables, [column.strip() for column in columns.split(",")])
    tell(as_markdown(tables, digits))
    if out is not None:
        write(tables, out, digits)
        tell(f"{out}: written")


RESAMPLED = (
    "95 %: bootstrap over the examples' images, {} times; none for scores that do not follow from sums over examples, "
    "or that are equal for all images; p of corpus scores: approximate randomisation"
)


@click.command()
@click.argument("predictions", type=PATH)
@click.option(
    "--references",
    required=True,
    type=PATH,
    help="A file of COCO captions or VQA questions, JSONL or JSON; or a recipe (.toml) or run folder, whose "
    "data set has the references.",
)
@click.option("--profile", help="The profile of the recipe in --references.")
@click.option("--split", help="The split of that recipe's data set; by default its evaluation split.")
@click.option("--step", help="Use the data set of this step of that recipe, if the step has its own.")
@repeated(
    "--metric",
    "names",
    "NAME",
    "The metric to use; by default all installed metrics for texts that need no settings.",
)
@repeated("--set", "sets", "METRIC.KEY=VALUE", "Set one key of a metric; VALUE as in TOML.")
@click.option("--against", type=PATH, help="Other predictions for the same examples; adds the paired difference.")
@click.option("--partial", is_flag=True, help="Score only examples with both a prediction and references.")
@click.option(
    "--resamples",
    default=1000,
    show_default=True,
    type=click.IntRange(0, 1_000_000),
    help="Bootstrap resamples for intervals, and shuffles for p of corpus scores; 0 for neither.",
)
@click.option("--json", "out", type=FILE, help="Write all results, with the scores of every example, to this file.")
def score(predictions: Path, references: Path, against: Path | None, out: Path | None, **options: Any) -> None:
    """Score any file of predictions.

    PREDICTIONS is JSONL or JSON of {"id": ..., "text": ...}, COCO results, or a file that mmgen wrote; or
    results in the published format of a task, with --metric for the task's metric. An id may have several texts: the
    first one counts."""
    from .. import scoring
    from ..registry import installed
    from ..report.short_paths import tell_apart

    files, registry = [predictions, *([against] if against else [])], installed()
    refuse_overwriting("--json", out, (*files, references))
    metrics = scoring.metrics(options["names"], options["sets"], registry)
    kinds = frozenset.intersection(*(frozenset(metric.judges) for metric in metrics.values()))
    forms = {form.name: form for metric in metrics.values() if (form := metric.result_files())}
    if not kinds or len(forms) > 1:
        raise MmgenError(f"--metric: {' and '.join(metrics)} score different kinds of predictions; use one at a time")
    form = next(iter(forms.values()), None)
    expected = scoring.read_references(references, registry, options["profile"], options["split"], options["step"])
    pairs = []
    for file in files:
        read = scoring.read_predictions(file, kinds, form, expected)
        pairs.append(
            {example.id: texts[0] for example, texts in scoring.pair(read, expected, file, options["partial"])}
        )
    examples = [example for example in expected if example.id in pairs[0].keys() & pairs[-1].keys()]
    if not examples:
        raise MmgenError(f"{' and '.join(map(str, files))}: the files have no example in common")
    systems = tell_apart(files)
    systems[-1] += " (again)" * (systems[1:] == systems[:1])
    compared, scores = scoring.compare(
        {name: [of_file[example.id] for example in examples] for name, of_file in zip(systems, pairs, strict=True)},
        examples,
        metrics,
        resamples=options["resamples"],
    )
    notes = [f"{len(examples)} of {len(expected)} examples", *compared.notes]
    notes += [RESAMPLED.format(options["resamples"])] * bool(options["resamples"])
    notes += [f"difference: {systems[0]} minus {systems[-1]}; p: two-sided, paired"] * bool(against)
    if out:  # before anything is printed: standard output may be closed
        rows = {row.labels[0]: {name: asdict(cell) for name, cell in row.cells.items()} for row in compared.rows}
        per_example = {name: scored.per_example for name, scored in scores.items()}
        ids = [example.id for example in examples]
        write_json(out, {"rows": rows, "ids": ids, "per_example": per_example, "notes": compared.notes})
        notes.append(f"{out}: written")
    tell("\n".join([table(compared.by_score()), "", *notes]))
