"""The command `mmgen predict`: predict and print a label, a choice, a region or boxes; result files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ..commands import (
    caption_option,
    data_option,
    jsonl_option,
    query_arguments,
    quiet,
    settings_option,
    shard_option,
)
from ..errors import MmgenError
from ..progress import tell
from .answer_output import Output, answer_all

SHOWN = 5  # labels, choices or boxes of a prediction that the terminal shows


@click.command()
@query_arguments
@caption_option
@settings_option(
    "A.B=VALUE",
    "Override the extractor of an input (inputs.image.extractor.type=roi) or, with --as, a key of the data "
    "(data.NAME=VALUE).",
)
@click.option(
    "--step",
    "steps",
    multiple=True,
    help="The step whose weights to use; by default the best one that predicts and reads the given inputs. With --as, "
    "may be repeated.",
)
@click.option(
    "--as",
    "form",
    help="Predict for a split of the data, and write the result file of a task to --out; the name of the format.",
)
@data_option
@click.option("--split", help="With --as: the split; by default the split on which the step is scored.")
@jsonl_option
@shard_option
def predict(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    caption: str | None,
    sets: tuple[str, ...],
    steps: tuple[str, ...],
    form: str | None,
    data: Path | None,
    split: str | None,
    out: Path | None,
    shard: str | None,
) -> None:
    """Predict labels, choices, regions or boxes with the model in the run folder RUN. SOURCES are images, folders of
    images, or JSONL files and tables (CSV, TSV) whose fields are inputs. --input also gives inputs.

    With --as, predict for a full split of RUN's data, or for an export of --data RECIPE, and write the result file that
    the task's evaluation reads.
    """
    pairs = (*([f"caption={caption}"] if caption else []), *pairs)
    if form:
        if out is None:
            raise MmgenError(f"--as {form}: requires --out FILE")
        if shard:
            raise MmgenError(f"--as {form}: writes one file for a full split; leave out --shard")
        if sources or pairs:
            raise MmgenError(f"--as {form}: predicts for a split of the data; leave out pictures and --input")
        _write_result_file(run, form, steps, data, split, sets, out)
        return
    if data or split or len(steps) > 1:
        raise MmgenError("--data, --split, and --step more than once, require --as; without --as, give one --step")
    if not sources and not pairs:
        raise MmgenError("no input; give a picture, a folder, a JSONL file, or --input NAME=VALUE")
    output = Output.of(_print_prediction, out, shard)
    quiet()
    from ..files import refuse_overwriting
    from ..inference.load import load_for
    from ..inference.query import named_values, read_sources

    step = steps[0] if steps else None
    refuse_overwriting("--out", out, sources)
    queries = read_sources(sources, named_values(pairs))
    answer_all(load_for(run, queries, step, sets, writes=False), queries, output)


def _write_result_file(
    where: Path,
    form: str,
    steps: Sequence[str],
    data: Path | None,
    split: str | None,
    sets: Sequence[str],
    out: Path,
) -> None:
    """Write the result file of a run's steps, or, with `data`, of an export."""
    quiet()
    from ..files import write_text
    from ..inference.result_file import result_file
    from ..progress import Bars

    write_text(out, result_file(where, form, steps, split, sets, data, Bars()))
    tell(f"{out}: written")


def _print_prediction(line: Mapping[str, Any], kind: str) -> None:
    """Print the line of an answer. `kind`: the kind of the prediction (`mmgen.examples.Prediction`)."""
    tell(line["id"])
    if "error" in line:
        tell(f"    skipped: {line['error']}", err=True)
        return
    value, score = line["value"], line["score"]
    try:
        if names := line.get("choices"):
            lines = _format_probabilities(zip(names, value["probabilities"], strict=True))
        else:
            lines = FORMATS[kind](value, score)
    except (LookupError, TypeError, ValueError, AttributeError):  # a plugin's own kind, or its own form of value
        from ..cards import as_json

        lines = [f"{score:6.1%}  {as_json(value)}"]
    for text in lines:
        tell(f"    {text}")


def _format_label(value: Any, score: float) -> list[str]:
    return _format_probabilities(value["probabilities"].items())


def _format_choice(value: Any, score: float) -> list[str]:
    return _format_probabilities(enumerate(value["probabilities"]))


def _format_probabilities(probabilities: Iterable[tuple[Any, float]]) -> list[str]:
    """The most probable labels or choices, one per line."""
    ranked = sorted(probabilities, key=lambda item: -item[1])
    return [f"{probability:6.1%}  {name}" for name, probability in ranked[:SHOWN]]


def _format_region(value: Any, score: float) -> list[str]:
    from ..cards import corners

    picture = f" of picture {value['picture'] + 1}" if "picture" in value else ""
    return [f"{score:6.1%}  {corners(value['box'])}, region {value['index']}{picture}"]


def _format_boxes(value: Any, score: float) -> list[str]:
    from ..cards import corners

    lines = [f"{'' if place else f'{score:6.1%}':6}  {corners(box)}" for place, box in enumerate(value[:SHOWN])]
    return lines + [f"{'':6}  and {len(value) - SHOWN} more"] * (len(value) > SHOWN)


FORMATS: Mapping[str, Callable[[Any, float], list[str]]] = {
    "label": _format_label,
    "choice": _format_choice,
    "region": _format_region,
    "boxes": _format_boxes,
}
