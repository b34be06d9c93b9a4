"""The score command: anybody's predictions against anybody's references, or what the steps of a finished run gave."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..commands import quiet
from ..errors import MmgenError
from ..files import refuse_overwriting
from ..progress import tell
from . import score_table
from .score_request import ONLY_FILES, ScoreRequest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..configs import MetricConfig
    from ..reading.results import ResultFiles
    from ..scoring import System
    from ..tensors import Example


MOST = 1_000_000  # resamples and shuffles: more say no more, and never end


@click.command()
@click.argument("predictions", metavar="PREDICTIONS|RUN", type=click.Path(path_type=Path))
@click.option(
    "--references",
    type=click.Path(path_type=Path),
    help="COCO captions, VQA questions, JSONL, JSON, CSV, TSV; or a recipe (.toml) or run folder, for its data set's.",
)
@click.option(
    "--references-per",
    "per",
    type=click.Choice(["image", "question"]),
    default="image",
    show_default=True,
    help="A text against all references of its image, as the papers do, or against every question by itself; the two "
    "cannot be compared.",
)
@click.option("--profile", help="Of the recipe that --references names.")
@click.option("--split", help="Of that recipe's data set; by default the one it evaluates on.")
@click.option("--step", help="Of that recipe, where the data that a step brings of its own are meant.")
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    help="What was learnt from, for the share of unseen texts; a recipe's own is known.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    help="Which; by default all installed ones for texts that need no setting, and of a run its recipe's. May be "
    "repeated.",
)
@click.option(
    "--set", "sets", multiple=True, metavar="METRIC.KEY=VALUE", help="A setting of a metric; VALUE as in TOML."
)
@click.option(
    "--against", type=click.Path(path_type=Path), help="Other predictions for the same examples: the paired difference."
)
@click.option("--partial", is_flag=True, help="Score only what has both a prediction and references.")
@click.option(
    "--resamples",
    default=1000,
    show_default=True,
    type=click.IntRange(0, MOST),
    help="Of the bootstrap; 0 for no intervals.",
)
@click.option(
    "--corpus-intervals", is_flag=True, help="Intervals for corpus scores too (BLEU, METEOR): scores 20 times more."
)
@click.option(
    "--randomisations",
    default=0,
    show_default=True,
    type=click.IntRange(0, MOST),
    help="p of the difference for corpus scores too, by as many shuffles (1000, say): scores twice for each.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the bootstrap and the shuffles.")
@click.option(
    "--json",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write everything, every example's scores too, to this file.",
)
@click.pass_context
def score(context: click.Context, **_: Any) -> None:
    """Score PREDICTIONS: JSONL or JSON of {"id": ..., "text": ...}, COCO results, CSV, TSV, or what mmgen wrote; or
    results of a task in its published form, with --metric for the task's metric.

    An id may have several texts: the first one counts, and oracle@n tells what the best would reach.

    Or score RUN, a run folder, without --references: what its steps wrote or predicted, with its recipe's metrics or
    with --metric. Nothing in the folder is changed; --json keeps the scores.
    """
    quiet()
    request = ScoreRequest(**context.params)
    if request.references is None and request.predictions.is_dir():
        _score_run(request)
    else:
        _score_files(request)


def _score_files(request: ScoreRequest) -> None:
    """Anybody's predictions against anybody's references."""
    from .. import scoring
    from ..progress import Bars
    from ..registry import installed

    references, train, against = request.references, request.train, request.against
    if references is None:
        raise click.UsageError("Missing option '--references'; only a run folder is scored without.")
    refuse_overwriting("--json", request.out, (request.predictions, references, train, against))
    named = request.profile or request.split or request.step
    if named and not (references.is_dir() or references.suffix == ".toml"):
        raise MmgenError(f"--references {references}: only a recipe or a run folder has profiles, splits and steps")
    if request.randomisations and not against:
        raise MmgenError("--randomisations: tests a difference; give the other predictions with --against")
    registry = installed()
    configs = scoring.metrics(request.names, request.sets, registry)
    kinds, form = _judged(configs), _form(configs, request.per)
    wanted = scoring.read_references(
        references, registry, request.per, request.profile, request.split, request.step, form
    )
    learnt = scoring.read_references(train, registry, request.per, request.profile).examples if train else ()
    told = frozenset(text for example in learnt for text in example.targets) if train else wanted.seen
    seen = told if kinds == {"text"} and not form else None
    files = [request.predictions, *([against] if against else [])]
    read = [scoring.read_predictions(file, request.per, kinds, form, wanted.examples) for file in files]
    pairs = [scoring.pair(each, wanted, file, request.partial) for each, file in zip(read, files, strict=True)]
    systems, examples = _systems(files, pairs)
    uncertainty = scoring.Uncertainty(request.resamples, request.corpus_intervals, request.randomisations, request.seed)
    found = scoring.compare(systems, examples, configs, seen=seen, uncertainty=uncertainty, progress=Bars())
    if request.out:  # before anything is shown: standard output may be closed
        score_table.write(request.out, found, [example.id for example in examples])
    tell(score_table.shown(found, systems))
    for note in score_table.notes(found, systems, len(examples), len(wanted.examples), request, form is None):
        tell(note)
    if request.out:
        tell(f"{request.out}: written")


def _judged(configs: Mapping[str, MetricConfig]) -> frozenset[str]:
    """The kinds of predictions that all of these metrics judge. Raises MmgenError where there is none."""
    first = next(iter(configs), "")
    kinds = frozenset({"text"}) if not configs else frozenset(configs[first].judges)
    for name, config in configs.items():
        if not kinds & config.judges:
            told = [" or ".join(sorted(judged)) for judged in (kinds, config.judges)]
            raise MmgenError(f"--metric: {first} judges {told[0]}, and {name} {told[1]}; score with one at a time")
        kinds &= config.judges
    return kinds


def _form(configs: Mapping[str, MetricConfig], per: str) -> ResultFiles | None:
    """The files in which predictions are exchanged that these metrics judge. Raises MmgenError."""
    forms = {form.name: form for config in configs.values() if (form := config.result_files())}
    if len(forms) > 1:
        raise MmgenError(
            f"--metric: these are of several tasks ({', '.join(forms)}); score with those of one at a time"
        )
    if forms and per == "question":
        raise MmgenError("--references-per question: is for texts; a prediction of a task has all its references")
    return next(iter(forms.values()), None)


def _score_run(request: ScoreRequest) -> None:
    """What the steps of a finished run wrote or predicted."""
    from ..progress import Bars
    from ..runs.rescore import rescore

    plain = {option.name: option.default for option in dataclasses.fields(request)}
    for name, flag in ONLY_FILES.items():
        if getattr(request, name) != plain[name]:
            run = request.predictions
            raise MmgenError(
                f"{flag}: is for files of predictions, such as {run}/steps/STEP/generations.jsonl --references {run}; "
                "a run folder takes --metric, --set and --json"
            )
    if request.out and request.out.resolve().is_relative_to(request.predictions.resolve()):
        raise MmgenError(f"--json {request.out}: lies in the run, which stays as it is; name a file elsewhere")
    found = rescore(request.predictions, request.names, request.sets, Bars())
    if request.out:
        score_table.write_rows(request.out, found)
    tell(found.table)
    if request.out:
        tell(f"{request.out}: written")
    else:
        tell("nothing is kept: --json FILE keeps it, and `mmgen run` with other [metrics] scores the run anew")


def _systems(files: list[Path], pairs) -> tuple[list[System], list[Example]]:
    """What each file predicts for the examples that all of them have, and these examples."""
    from ..scoring import System

    shared = set.intersection(*({example.id for example, _ in each} for each in pairs))
    if not shared:
        raise MmgenError(f"{' and '.join(map(str, files))}: no example has a prediction in both")
    pairs = [[(example, texts) for example, texts in each if example.id in shared] for each in pairs]
    labels = _labels(files)
    systems = [System(label, [texts for _, texts in each]) for label, each in zip(labels, pairs, strict=True)]
    return systems, [example for example, _ in pairs[0]]


def _labels(files: list[Path]) -> list[str]:
    """Names of the systems: the file, or what tells two files apart."""
    from ..report.labels import tell_apart

    if len(files) == 1:
        return [str(files[0])]
    one, other = tell_apart(files)
    return [one, other if one != other else f"{other} (again)"]
