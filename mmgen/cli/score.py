"""The score command: anybody's predictions against anybody's references."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..commands import quiet
from ..errors import MmgenError
from ..markdown import number, table

if TYPE_CHECKING:
    from ..scoring import Comparison, System
    from ..scoring.files import Per
    from ..tensors import Example


@click.command()
@click.argument("predictions", type=click.Path(path_type=Path))
@click.option(
    "--references",
    required=True,
    type=click.Path(path_type=Path),
    help="COCO captions, VQA questions, JSONL or JSON; or a recipe (.toml) or run folder, for its data set's.",
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
@click.option(
    "--train",
    type=click.Path(path_type=Path),
    help="What was learnt from, for the share of unseen texts; a recipe's own is known.",
)
@click.option(
    "--metric",
    "names",
    multiple=True,
    help="Which; by default all installed ones that need no setting. May be repeated.",
)
@click.option(
    "--set", "sets", multiple=True, metavar="METRIC.KEY=VALUE", help="A setting of a metric; VALUE as in TOML."
)
@click.option(
    "--against", type=click.Path(path_type=Path), help="Other predictions for the same examples: the paired difference."
)
@click.option("--partial", is_flag=True, help="Score only what has both a prediction and references.")
@click.option(
    "--resamples", default=1000, show_default=True, type=click.IntRange(0), help="Of the bootstrap; 0 for no intervals."
)
@click.option(
    "--corpus-intervals", is_flag=True, help="Intervals for corpus scores too (BLEU, METEOR): scores 20 times more."
)
@click.option(
    "--randomisations",
    default=0,
    show_default=True,
    type=click.IntRange(0),
    help="p of the difference for corpus scores too, by as many shuffles (1000, say): scores twice for each.",
)
@click.option("--seed", default=0, show_default=True, type=click.IntRange(0), help="Of the bootstrap and the shuffles.")
@click.option(
    "--json",
    "out",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write everything, every example's scores too, to this file.",
)
def score(
    predictions: Path,
    references: Path,
    per: Per,
    profile: str | None,
    split: str | None,
    train: Path | None,
    names,
    sets,
    against: Path | None,
    partial: bool,
    resamples: int,
    corpus_intervals: bool,
    randomisations: int,
    seed: int,
    out: Path | None,
) -> None:
    """Score PREDICTIONS: JSONL or JSON of {"id": ..., "text": ...}, COCO results, or what mmgen wrote.

    An id may have several texts: the first one counts, and oracle@n tells what the best would reach.
    """
    quiet()
    from .. import scoring
    from ..progress import Bars
    from ..registry import installed

    _refuse_overwriting(out, predictions, references, train, against)
    if (profile or split) and not (references.is_dir() or references.suffix == ".toml"):
        raise MmgenError(f"--references {references}: only a recipe or a run folder has profiles and splits")
    if randomisations and not against:
        raise MmgenError("--randomisations: tests a difference; give the other predictions with --against")
    registry = installed()
    configs = scoring.metrics(names, sets, registry)
    wanted = scoring.read_references(references, registry, per, profile, split)
    learnt = scoring.read_references(train, registry, per, profile).examples if train else ()
    seen = frozenset(text for example in learnt for text in example.targets) if train else wanted.seen
    files = [predictions, *([against] if against else [])]
    pairs = [scoring.pair(scoring.read_predictions(file, per), wanted, file, partial) for file in files]
    systems, examples = _systems(files, pairs)
    found = scoring.compare(
        systems,
        examples,
        configs,
        seen=seen,
        resamples=resamples,
        corpus=corpus_intervals,
        randomisations=randomisations,
        seed=seed,
        progress=Bars(),
    )
    click.echo(_shown(found, systems))
    for note in _notes(
        found, systems, len(examples), len(wanted.examples), per, resamples, randomisations, corpus_intervals
    ):
        click.echo(note)
    if out:
        _write(out, found, [example.id for example in examples])
        click.echo(f"{out}: written")


def _refuse_overwriting(out: Path | None, *inputs: Path | None) -> None:
    if out and out.exists() and any(own and own.exists() and out.samefile(own) for own in inputs):
        raise MmgenError(f"--json {out}: is what is scored, and would be overwritten; name another file")


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


def _shown(found: Comparison, systems) -> str:
    """The table, a row a metric."""
    names = [system.name for system in systems] + (["difference"] if len(systems) == 2 else [])
    rows = [["metric"]]
    for name in names:
        rows[0] += [name if len(names) > 1 else "value", "95 %"]
        rows[0] += [_oracle_name(systems, name)] if name in found.oracle else []
    rows[0] += ["p"] if found.probabilities else []
    for metric in found.values[names[0]]:
        row = [metric]
        for name in names:
            span = found.intervals.get(name, {}).get(metric)
            row += [number(found.values[name].get(metric)), "-" if span is None else f"{span[0]:.2f} to {span[1]:.2f}"]
            row += [number(found.oracle[name].get(metric))] if name in found.oracle else []
        row += (
            [f"{found.probabilities[metric]:.3f}" if metric in found.probabilities else "-"]
            if found.probabilities
            else []
        )
        rows.append(row)
    return table(rows)


def _oracle_name(systems, name: str) -> str:
    texts = next(system.texts for system in systems if system.name == name)
    return f"oracle@{max(map(len, texts))}"


def _notes(
    found: Comparison, systems, count: int, total: int, per: str, resamples: int, randomisations: int, corpus: bool
):
    yield ""
    if len(systems) == 2:
        told = {
            "bootstrap": "paired bootstrap, two-sided",
            "jackknife": "paired jackknife, two-sided t-test over 20 blocks",
            "randomisation": f"approximate randomisation, two-sided, {randomisations} shuffles",
        }
        names = {test: ", ".join(name for name, own in found.tests.items() if own == test) for test in told}
        tests = [how + f" for {names[test]}" * (test != "bootstrap") for test, how in told.items() if names[test]]
        yield f"difference: {systems[0].name} minus {systems[1].name}" + (f"; p: {'; '.join(tests)}" if tests else "")
    left = f" of {total}" if total != count else ""
    yield f"{count}{left} examples, references per {per}" + (
        "; not to be compared with scores per image, and a text counts once for every question of its image"
        if per == "question"
        else ""
    )
    yield from found.notes
    own = found.intervals.get(systems[0].name, {})
    missing = [
        metric for metric, value in found.values[systems[0].name].items() if value is not None and metric not in own
    ]
    if resamples and not own:
        yield "no intervals: the examples are all of one image, and nothing tells how much others would vary"
    elif resamples:
        yield f"95 %: bootstrap over examples, {resamples} times" + "; corpus scores by the jackknife, 20 blocks" * (
            corpus and not missing
        )
        if missing:
            why = "the jackknife takes 20 images" if corpus else "--corpus-intervals scores again and again for one"
            yield f"no interval for {', '.join(missing)}: no mean over examples; {why}"
    if found.oracle:
        yield "oracle: for every example the text that the metric itself likes best"


def _write(out: Path, found: Comparison, ids: list[str]) -> None:
    from dataclasses import asdict

    from ..files import write_json

    each = {
        system: [
            {"id": own, **{name: values[place] for name, values in columns.items()}} for place, own in enumerate(ids)
        ]
        for system, columns in found.per_example.items()
    }
    write_json(out, {**asdict(found), "per_example": each})
