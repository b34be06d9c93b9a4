"""The command `mmgen score`: any file of predictions, alone or against another."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from mmgen.commands import FILE, PATH, repeated
from mmgen.errors import MmgenError
from mmgen.files import refuse_overwriting, write_json
from mmgen.progress import tell

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
    from mmgen.registry import installed
    from mmgen.report.short_paths import tell_apart

    from .files import pair, read_predictions, read_references
    from .systems import compare
    from .systems import metrics as choose_metrics

    files, registry = [predictions, *([against] if against else [])], installed()
    refuse_overwriting("--json", out, (*files, references))
    metrics = choose_metrics(options["names"], options["sets"], registry)
    kinds = frozenset.intersection(*(frozenset(metric.judges) for metric in metrics.values()))
    forms = {form.name: form for metric in metrics.values() if (form := metric.result_files())}
    if not kinds or len(forms) > 1:
        raise MmgenError(f"--metric: {' and '.join(metrics)} score different kinds of predictions; use one at a time")
    form = next(iter(forms.values()), None)
    expected = read_references(references, registry, options["profile"], options["split"], options["step"])
    pairs = []
    for file in files:
        read = read_predictions(file, kinds, form, expected)
        pairs.append({example.id: texts[0] for example, texts in pair(read, expected, file, options["partial"])})
    examples = [example for example in expected if example.id in pairs[0].keys() & pairs[-1].keys()]
    if not examples:
        raise MmgenError(f"{' and '.join(map(str, files))}: the files have no example in common")
    systems = tell_apart(files)
    compared, scores = compare(
        {name: [of_file[example.id] for example in examples] for name, of_file in zip(systems, pairs, strict=True)},
        examples,
        metrics,
        resamples=options["resamples"],
    )
    notes = [f"{len(examples)} of {len(expected)} examples", *compared.notes]
    notes += [RESAMPLED.format(options["resamples"])] * bool(options["resamples"])
    notes += [f"difference: {systems[0]} minus {systems[-1]}; p: two-sided, paired"] * bool(compared.rows[2:])
    if out:  # before anything is printed: standard output may be closed
        rows = {row.labels[0]: {name: asdict(cell) for name, cell in row.cells.items()} for row in compared.rows}
        per_example = {name: scored.per_example for name, scored in scores.items()}
        ids = [example.id for example in examples]
        write_json(out, {"rows": rows, "ids": ids, "per_example": per_example, "notes": compared.notes})
        notes.append(f"{out}: written")
    tell(replace(compared, notes=tuple(notes)))
