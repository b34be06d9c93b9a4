"""The command `mmgen score` on made-up files, and a metric of two kinds of score."""

import gzip
import json

from click.testing import CliRunner

import mmgen
from mmgen.cli import main
from mmgen.examples import Example, Scores
from mmgen.parts import Metric

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


class Words(mmgen.MetricConfig):
    """Share of correct texts (a mean over examples), and the number of different texts (not a mean)."""

    type: str = "words"

    def build(self):
        class Share(Metric):
            def score(self, generations, examples):
                values = [100.0 * (g.text in e.targets) for g, e in zip(generations, examples, strict=True)]
                return Scores(
                    {"right": sum(values) / len(values), "different": float(len({g.text for g in generations}))},
                    {"right": values},
                )

        return Share()


def examples(count: int) -> list[Example]:
    return [Example(str(n), {}, (f"t{n}",)) for n in range(count)]
