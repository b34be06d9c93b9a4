"""The command `mmgen score` on made-up files."""

import gzip
import json

from click.testing import CliRunner

from mmgen.cli import main

FAST = ["--metric", "captioneval", "--set", "captioneval.meteor=false", "--set", "captioneval.tokenizer=own"]


def write(path, value, lines=False):
    text = "\n".join(json.dumps(row) for row in value) if lines else json.dumps(value)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def score(*arguments):
    return CliRunner().invoke(main, ["score", *map(str, arguments)])


def cells(output: str) -> dict[str, list[str]]:
    """First cell of every row of the table -> the other cells."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")] for line in output.splitlines() if line.startswith("| ")
    ]
    return {row[0]: row[1:] for row in rows}
