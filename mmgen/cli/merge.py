"""The command `mmgen merge`: join the files of all shards, and find what is missing or there twice."""

from __future__ import annotations

from pathlib import Path

import click

from ..progress import tell


@click.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--check", is_flag=True, help="Only check the shards; write nothing.")
def merge(path: Path, check: bool) -> None:
    """Join all shards of PATH, the file that was given to `mmgen generate` or `mmgen predict` with --shard.

    Every shard must be there, of the same input and model.
    """
    import json

    from ..files import write_text
    from ..inference.answers import merged

    answers = merged(path)
    if check:
        tell(f"{path}: all shards are complete, {len(answers)} answers")
        return
    write_text(path, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in answers))
    tell(f"{path}: {len(answers)} line{'s' * (len(answers) != 1)}")
