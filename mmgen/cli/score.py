"""The command `mmgen score`: score files of predictions against references, or a run again."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from ..commands import quiet, settings_option
from ..errors import MmgenError
from ..files import refuse_overwriting
from ..progress import tell
from . import score_table
from .score_request import ScoreRequest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..configs import MetricConfig
    from ..examples import Example
    from ..reading.results import ResultFiles
    from ..scoring import System


OF_RUNS = ("predictions", "names", "sets", "out")  # options for run folders; the others are for files only
MOST = 1_000_000  # resamples and shuffles; more take too long and add no precision


@click.command()
@click.argument("predictions", metavar="PREDICTIONS|RUN", type=click.Path(path_type=Path))
@click.option(
    "--references",
    type=click.Path(path_type=Path),
    help="A file of COCO captions or VQA questions, JSONL, JSON, CSV or TSV; or a recipe (.toml) or run folder, whose "
    "data set has the references.",
)
@click.option(
    "--references-per",
    "per",
    type=click.Choice(["image", "question"]),
    default="image",
    show_default=True,
    help="Score a text against all references of its image, as the papers do, or against each question separately; the "
    "two kinds of scores are not comparable.",
)
@click.option("--profile", help="The profile of the recipe in --references.")
@click.option("--split", help="The split of that recipe's data set; by default its evaluation split.")
@click.option("--step", help="Use the data set of this step of that recipe, if the step has its own.")
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    help="The training texts, to compute the share of unseen texts; a recipe's training texts are known.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    help="The metric to use; by default all installed metrics for texts that need no settings, and for a run the "
    "metrics of its recipe. May be repeated.",
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
    help="Number of bootstrap resamples; 0 for no intervals.",
)
@click.option(
    "--corpus-intervals",
    is_flag=True,
    help="Also compute intervals for corpus scores (BLEU, METEOR), which takes 20 more scorings.",
)
@click.option(
    "--randomisations",
    default=0,
    show_default=True,
    type=click.IntRange(0, MOST),
    help="Also compute p of the difference for corpus scores, with this many shuffles (such as 1000); each shuffle "
    "takes two scorings.",
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
@click.pass_context
def score(context: click.Context, **_: Any) -> None:
    """Score PREDICTIONS: JSONL or JSON of {"id": ..., "text": ...}, COCO results, CSV, TSV, or a file that mmgen wrote;
    or results in the published format of a task, with --metric for the task's metric.

    An id may have several texts: the first one counts, and oracle@n is the score of the best one.

    Or score the run folder RUN, without --references: the texts and predictions of its steps, with the metrics of its
    recipe or with --metric. The folder is not changed; --json saves the scores.
    """
    quiet()
    request = ScoreRequest(**context.params)
    if request.references is None and request.predictions.is_dir():
        _score_run(request, context)
    else:
        _score_files(request)


def _score_files(request: ScoreRequest) -> None:
    """Score a file of predictions against references, and print the table."""
    from .. import scoring
    from ..progress import Bars
    from ..registry import installed

    references, train, against = request.references, request.train, request.against
    if references is None:
        raise click.UsageError("Missing option '--references'; only a run folder can be scored without references.")
    refuse_overwriting("--json", request.out, (request.predictions, references, train, against))
    recipe_option = request.profile or request.split or request.step
    if recipe_option and not (references.is_dir() or references.suffix == ".toml"):
        raise MmgenError(
            f"--references {references}: is a file; --profile, --split and --step need a recipe or a run folder"
        )
    if request.randomisations and not against:
        raise MmgenError("--randomisations: needs two systems; give the other predictions with --against")
    registry = installed()
    configs = scoring.metrics(request.names, request.sets, registry)
    kinds, form = _common_kinds(configs), _result_format(configs, request.per)
    expected = scoring.read_references(
        references, registry, request.per, request.profile, request.split, request.step, form
    )
    trained_on = scoring.read_references(train, registry, request.per, request.profile).examples if train else ()
    training_texts = frozenset(text for example in trained_on for text in example.targets) if train else expected.seen
    seen = training_texts if kinds == {"text"} and not form else None
    files = [request.predictions, *([against] if against else [])]
    predictions = [scoring.read_predictions(file, request.per, kinds, form, expected.examples) for file in files]
    pairs = [
        scoring.pair(file_predictions, expected, file, request.partial)
        for file_predictions, file in zip(predictions, files, strict=True)
    ]
    systems, examples = _read_systems(files, pairs)
    uncertainty = scoring.Uncertainty(request.resamples, request.corpus_intervals, request.randomisations, request.seed)
    comparison = scoring.compare(systems, examples, configs, seen=seen, uncertainty=uncertainty, progress=Bars())
    if request.out:  # before anything is printed: standard output may be closed
        score_table.write(request.out, comparison, [example.id for example in examples])
    tell(score_table.format_table(comparison, systems))
    for note in score_table.notes(comparison, systems, len(examples), len(expected.examples), request, form is None):
        tell(note)
    if request.out:
        tell(f"{request.out}: written")


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


def _result_format(configs: Mapping[str, MetricConfig], per: str) -> ResultFiles | None:
    """The result files of the task of these metrics, or None. Raises MmgenError for metrics of several tasks."""
    forms = {form.name: form for config in configs.values() if (form := config.result_files())}
    if len(forms) > 1:
        raise MmgenError(
            f"--metric: the metrics are for several tasks ({', '.join(forms)}); use the metrics of one task at a time"
        )
    if forms and per == "question":
        raise MmgenError("--references-per question: only for texts; leave it out for predictions of a task")
    return next(iter(forms.values()), None)


def _score_run(request: ScoreRequest, context: click.Context) -> None:
    """Score the texts and predictions of a run's steps, and print the tables."""
    from ..progress import Bars
    from ..runs.rescore import rescore

    if option := _option_beside(OF_RUNS, context):
        run = request.predictions
        raise MmgenError(
            f"{option}: only for files of predictions, such as {run}/steps/STEP/generations.jsonl --references {run}; "
            "a run folder accepts --metric, --set and --json"
        )
    if request.out and Path(os.path.realpath(request.out)).is_relative_to(os.path.realpath(request.predictions)):
        raise MmgenError(f"--json {request.out}: is inside the run folder, which is read-only; name a file elsewhere")
    refuse_overwriting("--json", request.out)
    scores = rescore(request.predictions, request.names, request.sets, Bars())
    if request.out:
        score_table.write_rows(request.out, scores)
    tell(scores.table)
    if request.out:
        tell(f"{request.out}: written")
    else:
        tell("scores are not saved; use --json FILE, or change [metrics] and run `mmgen run` to score the run again")


def _option_beside(known: Sequence[str], context: click.Context) -> str:
    """The first option on the command line that is not one of the known ones; empty if there is none."""
    return next(
        (
            option.opts[0]
            for option in context.command.params
            if (option.name or "") not in known
            and context.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
        ),
        "",
    )


def _read_systems(files: list[Path], pairs) -> tuple[list[System], list[Example]]:
    """The systems, one per file, with texts for the examples that all files have; and these examples."""
    from ..scoring import System

    shared = set.intersection(*({example.id for example, _ in file_pairs} for file_pairs in pairs))
    if not shared:
        raise MmgenError(f"{' and '.join(map(str, files))}: the files have no example in common")
    pairs = [[(example, texts) for example, texts in file_pairs if example.id in shared] for file_pairs in pairs]
    system_names = _system_names(files)
    systems = [
        System(name, [texts for _, texts in file_pairs]) for name, file_pairs in zip(system_names, pairs, strict=True)
    ]
    return systems, [example for example, _ in pairs[0]]


def _system_names(files: list[Path]) -> list[str]:
    """Names of the systems: the file, or the parts in which two paths differ."""
    from ..report.short_paths import tell_apart

    if len(files) == 1:
        return [str(files[0])]
    first, second = tell_apart(files)
    return [first, second if first != second else f"{second} (again)"]
