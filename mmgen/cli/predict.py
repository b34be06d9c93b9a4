"""The command that answers with a label, a choice, a region or boxes: predict."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from ..commands import asked_arguments, jsonl_option, quiet
from ..errors import MmgenError
from ..progress import tell

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
        if sources or pairs or out is None:
            raise MmgenError(f"--as {form}: predicts for a split of the run's own data; give --out FILE and no sources")
        _write_result_file(run, form, steps, split, sets, out)
        return
    if split or len(steps) > 1:
        raise MmgenError("--split, and --step more than once: only with --as, for a split of the run's own data")
    if not sources and not pairs:
        raise MmgenError("give a picture, a folder or a JSONL file of them, or --input NAME=VALUE")
    quiet()
    from ..progress import Bars, Progress
    from ..runs import predict as asked

    wanted = asked.requests(sources, asked.named_values(list(pairs)))
    if out:
        asked.refuse_overwriting(out, run, sources, wanted)
    read, progress = 0, Bars() if out else Progress()
    with asked.answers_file(out) if out else contextlib.nullcontext(_print) as add:
        loaded = asked.load(run, wanted, steps[0] if steps else None, sets, writes=False)
        with progress.task(f"{loaded.step}: predicting", len(wanted), "examples") as advance:
            for query, outcome in loaded.asker.predictions(wanted, at_once=16 if out else 1):
                line = asked.as_json(query, outcome)
                read += "error" not in line
                if not read and len(wanted) == 1 and not out:
                    raise MmgenError(line["error"])
                add(line)
                advance()
    if out:
        tell(f"{out}: {len(wanted)} line{'s' * (len(wanted) != 1)}")
    inputs = " and ".join(loaded.recipe.steps[loaded.step].inputs)
    tell(f"predicted by the step '{loaded.step}', which reads {inputs}", err=True)
    if not read:
        raise MmgenError("nothing of it could be read")


def _write_result_file(
    run: Path, form: str, steps: Sequence[str], split: str | None, sets: Sequence[str], out: Path
) -> None:
    quiet()
    from ..files import write_text
    from ..progress import Bars
    from ..runs.query import refuse_overwriting
    from ..runs.result_file import result_file

    refuse_overwriting(out, run, (), ())
    write_text(out, result_file(run, form, steps, split, sets, Bars()))
    tell(f"{out}: written")


def _print(line: Mapping) -> None:
    from ..report import corners

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
