"""Measure every encoder family with small random weights, and write the table of docs/guides/encoders.md.

    python -m tools.encoders [--write] [FAMILY ...]

Times are processor seconds of one thread, so other processes change them little; the median of several rounds. That
every family of the table is exact, tests/plugins/encoders shows."""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import torch
import transformers
from mmgen_encoders import AnyEncoder
from mmgen_encoders.encoder import EncoderBackbone
from mmgen_generators import Masked
from mmgen_inputs import Text
from transformers.models.auto import MODEL_FOR_MASKED_LM_MAPPING

from mmgen import Decoding
from mmgen.errors import DataError
from mmgen.evaluation.answers import generate
from mmgen.examples import Example
from mmgen.model import Model, compose
from mmgen.testing import TEXTS
from mmgen.testing.rows import prefix, some_ids

PAGE = Path(__file__).resolve().parents[1] / "docs" / "encoders.md"
BEGIN, END = "<!-- families: begin -->", "<!-- families: end -->"
ROWS, SLOTS, WRITTEN, ROUNDS = 4, 100, 20, 5
SEEING = ("modernvbert", "ultravbert")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.encoders", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("families", nargs="*", help="by default every masked-LM family of transformers")
    parser.add_argument("--write", action="store_true", help="write the table into docs/guides/encoders.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    rows, refused = ["| family | plain rows | writing |", "|---|---:|---:|"], []
    for name in options.families or sorted({config.model_type for config in MODEL_FOR_MASKED_LM_MAPPING} - {*SEEING}):
        try:
            rows.append(row(name))
            print(rows[-1])
        except DataError as error:
            refused.append((name, reason_of(name, str(error))))
            print(*refused[-1], sep=": ")
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        lines = [page.partition(BEGIN)[0] + BEGIN, *rows, "", *reasons(refused), END + page.partition(END)[2]]
        PAGE.write_text("\n".join(lines), encoding="utf-8")


def reason_of(name: str, message: str) -> str:
    """The reason in an error, without its place and advice."""
    behind_name = message.partition(f"'{name}'")[2] or message.partition(": ")[2]
    return behind_name.strip(": ").rpartition(";")[0]


def reasons(refused: Sequence[tuple[str, str]]) -> Iterator[str]:
    """One line for each reason."""
    for reason in dict.fromkeys(reason for _, reason in refused):
        yield f"- {', '.join(f'`{name}`' for name, other_reason in refused if other_reason == reason)}: {reason}."


def row(name: str) -> str:
    """A row of the table. Raises DataError for a family that mmgen's function does not reach."""
    config = AnyEncoder(family=name, num_hidden_layers=4, hidden_size=256, num_attention_heads=4, vocab_size=64)
    model = compose(config, {"caption": Text()}, Masked(max_tokens=WRITTEN), texts=TEXTS).eval()
    return f"| `{name}` | {plain_rows(model.backbone):.2f} | {writing(model):.1f} |"


@torch.no_grad()
def plain_rows(backbone: EncoderBackbone) -> float:
    """The time of plain rows through mmgen, as a share of that of transformers' own attention."""
    ids = some_ids(backbone, 8) * SLOTS
    before = prefix(backbone, [ids[first : first + SLOTS] for first in range(ROWS)])
    arguments = {"inputs_embeds": before.states, "position_ids": before.positions + backbone.first_position}
    ours = seconds(lambda: backbone.encode(before))
    theirs = seconds(lambda: backbone.model.base_model(**arguments))
    return ours / theirs


def writing(model: Model) -> float:
    """How many times less time 20 tokens behind 100 slots take with a cache, greedily, than without."""
    caption = " ".join(" ".join(TEXTS * SLOTS).split()[:SLOTS])
    examples = [Example(f"e{number}", {"caption": (caption,)}, ("a",)) for number in range(ROWS)]
    times = []
    for caches in (True, False):
        model.backbone.caches = caches
        times.append(seconds(lambda: generate(model, examples, Decoding(min_new_tokens=WRITTEN - 1)), rounds=1))
    return times[1] / times[0]


def seconds(work: Callable[[], object], rounds: int = ROUNDS) -> float:
    """The median of the processor seconds of this thread."""
    work()
    taken = []
    for _ in range(rounds):
        start = time.thread_time()
        work()
        taken.append(time.thread_time() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    main()
