"""The command `mmgen find`: the pictures of a folder that fit a text, or the texts of a file that fit a picture."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from mmgen.commands import query_arguments, quiet, settings_option
from mmgen.errors import MmgenError
from mmgen.progress import tell


@click.command()
@query_arguments
@settings_option("A.B=VALUE", "Override the extractor of an input (inputs.image.extractor.type=roi).")
@click.option("--step", help="The step whose weights to use; by default the last one that compares inputs.")
@click.option(
    "--index",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The file in which the vectors of pictures are kept, so that a later query encodes only new and changed ones.",
)
@click.option("--n", default=10, show_default=True, type=click.IntRange(1), help="How many matches to print.")
def find(
    run: Path,
    sources: tuple[Path, ...],
    pairs: tuple[str, ...],
    sets: tuple[str, ...],
    step: str | None,
    index: Path | None,
    n: int,
) -> None:
    """Find what fits the query among SOURCES, the most similar first, with the model of the run folder or export RUN.
    SOURCES are images, folders of images, or JSONL files whose lines give one input. --input is the query: a text for
    pictures, a picture for texts.
    """
    if not sources or not pairs:
        raise MmgenError('give what to search, and the query: mmgen find RUN photos/ --input caption="a red ball"')
    quiet()
    from mmgen.files import refuse_special
    from mmgen.inference.load import load_for
    from mmgen.inference.query import named_values, read_sources
    from mmgen.progress import Bars

    from .index import VectorIndex

    values = named_values(list(pairs))
    candidates = read_sources(sources)
    if index:  # a file with anything else is refused when it is read
        refuse_special(index, option="--index")
    query = read_sources([], values)
    predictor = load_for(run, [*query, *candidates], step, sets, writes=False)
    vectors = VectorIndex(predictor, index)
    failed = vectors.add(candidates, Bars() if sys.stdout.isatty() else None)  # a pipe gets the matches alone
    for answer in failed:
        tell(f"{answer.id}: skipped: {answer.error}", err=True)
    if not vectors.ids:
        raise MmgenError("could not read any of the input")
    for match in vectors.rank(query[0])[:n]:
        tell(f"{match.similarity:7.4f}  {match.id}")
    if index:
        tell(f"{index}: {len(vectors.ids)} vectors, {vectors.encoded - len(failed)} of them new", err=True)
