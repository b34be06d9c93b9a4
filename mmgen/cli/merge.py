"""The command `mmgen merge`: join the files of all shards, and find what is missing or there twice."""

from __future__ import annotations

from pathlib import Path

import click

from ..errors import MmgenError
from ..progress import tell


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check the shards; write nothing.")
@click.option(
    "--source",
    help="Of features: the source of the images; every one of them must have features.",
)
def merge(path: Path, check: bool, source: str | None) -> None:
    """Join all shards of PATH, the file that was given to `mmgen features extract`, `mmgen generate` or `mmgen predict`
    with --shard.

    Every shard must be there, with the same model or extractor, and nothing may be missing or there twice.
    """
    from ..features.multi_file import ENDINGS

    if path.suffix in ENDINGS:
        _merge_features(path, check, source)
    elif source:
        raise MmgenError(f"--source {source}: is only for features, files of {' or '.join(ENDINGS)}")
    else:
        _merge_answers(path, check)


def _merge_answers(path: Path, check: bool) -> None:
    import json

    from ..files import refuse_overwriting, write_text
    from ..inference.answers import merged

    answers = merged(path)
    if check:
        tell(f"{path}: all shards are complete, {len(answers)} answers")
        return
    refuse_overwriting("PATH", path)
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in answers))
    tell(f"{path}: {len(answers)} line{'s' * (len(answers) != 1)}")


def _merge_features(path: Path, check: bool, source: str | None) -> None:
    from ..features.merge import checked_shards, write_merged
    from ..features.picture_sources import pictures_of
    from ..progress import Bars

    store = checked_shards(path, pictures_of(source) if source else None, source or "")
    if check:
        tell(f"{path}: all shards are complete, {len(store)} images")
        return
    write_merged(path, store, Bars())
    tell(f"{path}: {len(store)} images")
