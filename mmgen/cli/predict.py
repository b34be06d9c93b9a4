"""The command that answers with a label, a choice, a region or boxes: predict."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ..commands import asked_arguments, jsonl_option, quiet
from ..errors import MmgenError
from ..progress import tell
from .asking import answer_all

SHOWN = 5  # labels of a prediction that the terminal shows


@click.command()
@asked_arguments
@click.option(
    "--set",
    "sets",
    multiple=True,
    metavar="A.B=VALUE",
    help="An input's extractor (inputs.image.extractor.type=roi); with --as the data's keys too (data.NAME=VALUE). May "
    "be repeated.",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    help="Which step's weights; by default the last that predicts and reads what is given. May be repeated with --as.",
)
@click.option(
    "--as", "form", help="Predict for a split of the data, and write --out as the result file of this task (a name)."
)
@click.option("--split", help="With --as: which split; by default the one that the step is scored on.")
@jsonl_option
def predict(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    sets: tuple[str, ...],
    steps: tuple[str, ...],
    form: str | None,
    split: str | None,
    out: Path | None,
) -> None:
    """Predict labels, choices, regions or boxes with the model of RUN (a run folder) for SOURCES: images, folders of
    images, JSONL files whose fields are inputs; or for what --input gives.

    With --as, predict for a whole split of RUN's data, and write the file that the task's evaluation reads.
    """
    if form:
        if out is None:
            raise MmgenError(f"--as {form}: needs --out FILE")
        if sources or pairs:
            raise MmgenError(f"--as {form}: takes no pictures and no --input; it predicts for a split of the data")
        _write_result_file(run, form, steps, split, sets, out)
        return
    if split or len(steps) > 1:
        raise MmgenError("--split, and --step more than once: only with --as, for a split of the run's own data")
    if not sources and not pairs:
        raise MmgenError("give a picture, a folder or a JSONL file of them, or --input NAME=VALUE")
    quiet()
    from ..inference.load import load_for
    from ..inference.query import named_values, read_sources, refuse_overwriting

    queries = read_sources(sources, named_values(list(pairs)))
    if out:
        refuse_overwriting(out, run, sources, queries)

    def begin(batch_size: int):
        predictor = load_for(run, queries, steps[0] if steps else None, sets, writes=False)
        return predictor, predictor.answers(queries, batch_size=batch_size)

    answer_all(queries, begin, ("predicting", "predicted"), _print, out)


def _write_result_file(
    run: Path, form: str, steps: Sequence[str], split: str | None, sets: Sequence[str], out: Path
) -> None:
    quiet()
    from ..files import write_text
    from ..inference.query import refuse_overwriting
    from ..inference.result_file import result_file
    from ..progress import Bars

    refuse_overwriting(out, run, (), ())
    write_text(out, result_file(run, form, steps, split, sets, Bars()))
    tell(f"{out}: written")


def _print(line: Mapping) -> None:
    from ..cards import corners

    tell(line["id"])
    if "error" in line:
        tell(f"    skipped: {line['error']}", err=True)
        return
    value = line["value"]
    if isinstance(value, dict) and "probabilities" in value:
        shares = value["probabilities"]  # by label, or one for each choice
        named = shares.items() if isinstance(shares, dict) else enumerate(shares)
        for label, share in sorted(named, key=lambda each: -each[1])[:SHOWN]:
            tell(f"    {share:6.1%}  {label}")
    elif isinstance(value, list):  # boxes
        sure = f"{line['score']:6.1%}"
        for place, box in enumerate(value[:SHOWN]):
            tell(f"    {sure if not place else '':6}  {corners(box)}")
        if len(value) > SHOWN:
            tell(f"            and {len(value) - SHOWN} more")
    else:
        of = f" of picture {value['picture'] + 1}" if isinstance(value, dict) and "picture" in value else ""
        told = f"{corners(value['box'])}, region {value['index']}{of}" if "box" in value else json.dumps(value)
        tell(f"    {line['score']:6.1%}  {told}")
