"""Measures every encoder family with small random weights, and writes the table of docs/encoders.md.

    python -m tools.encoders [--write] [FAMILY ...]

Exactness is compared with the paper's procedure over plain rows (tests/kit/families.py). Times are processor seconds of
one thread, so other processes change them little; the median of several rounds.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
import transformers
from mmgen_encoders import AnyEncoder
from mmgen_encoders.attention import transformers_attention
from mmgen_encoders.encoder import EncoderBackbone
from mmgen_masked import Masked
from mmgen_text import Text
from transformers.models.auto import MODEL_FOR_MASKED_LM_MAPPING

from mmgen import Decoding
from mmgen.errors import DataError
from mmgen.evaluation.generate import generate
from mmgen.model import Model, compose
from mmgen.tensors import MASK, Example, Slots
from mmgen.testing import TEXTS
from mmgen.testing.rows import behind, prefix
from tests.kit import families

PAGE = Path(__file__).resolve().parents[1] / "docs" / "encoders.md"
BEGIN, END = "<!-- families: begin -->", "<!-- families: end -->"
ROWS, SLOTS, WRITTEN, ROUNDS = 4, 100, 20, 5
SEEING = ("modernvbert", "ultravbert")  # backbones of another plugin
HEADER = ("family", "packed", "cached", "plain rows", "writing")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.encoders", description=__doc__)
    parser.add_argument("families", nargs="*", help="by default every masked-LM family of transformers")
    parser.add_argument("--write", action="store_true", help="write the table into docs/encoders.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    logging.disable(logging.INFO)
    names = options.families or sorted({config.model_type for config in MODEL_FOR_MASKED_LM_MAPPING} - {*SEEING})
    reached, refused = [], []
    for name in names:
        try:
            reached.append(" | ".join(row(name)))
        except DataError as error:
            refused.append((name, reason_of(name, str(error))))
        print((reached[-1] if not refused or refused[-1][0] != name else f"{name}: {refused[-1][1]}"), flush=True)
    lines = [*table(reached), "", *reasons(refused)]
    if options.write:
        page = PAGE.read_text(encoding="utf-8")
        before, after = page.partition(BEGIN)[0], page.partition(END)[2]
        PAGE.write_text("\n".join([before + BEGIN, *lines, END]) + after, encoding="utf-8")


def reason_of(name: str, message: str) -> str:
    """The reason in an error, without its place and advice."""
    if message.endswith("has a decoder; choose an encoder"):
        return "it has a decoder"
    behind_name = message.partition(f"'{name}': ")[2] or message.partition(": ")[2]
    return behind_name.rpartition(";")[0]


def table(rows: list[str]) -> list[str]:
    return [f"| {' | '.join(HEADER)} |", "|---|---:|---:|---:|---:|", *(f"| {line} |" for line in rows)]


def reasons(refused: list[tuple[str, str]]) -> Iterator[str]:
    """One line for each reason."""
    for reason in dict.fromkeys(reason for _, reason in refused):
        yield f"- {', '.join(f'`{name}`' for name, other_reason in refused if other_reason == reason)}: {reason}."


def row(name: str) -> tuple[str, ...]:
    """A row of the table. Raises DataError for a family that mmgen's function does not reach."""
    check(name)
    packed, cached = differences(families.build(name))
    config = AnyEncoder(family=name, num_hidden_layers=4, hidden_size=256, num_attention_heads=4, vocab_size=64)
    model = compose(config, {"caption": Text()}, Masked(max_tokens=WRITTEN), texts=TEXTS).eval()
    speed, cached_speed = plain_rows(model.backbone), writing(model)
    return (f"`{name}`", f"{packed:.0e}", f"{cached:.0e}", f"{speed:.2f}", f"{cached_speed:.1f}")


def check(name: str) -> None:
    AnyEncoder(family=name, num_hidden_layers=2, hidden_size=32, num_attention_heads=4, vocab_size=64).check_weights()


@torch.no_grad()
def differences(backbone: EncoderBackbone) -> tuple[float, float]:
    """The largest differences of log-probabilities from the paper's procedure: in one pass, and behind cached
    inputs."""
    before, alone, targets = families.ragged(backbone)
    expected = torch.stack(families.naive_log_probabilities(backbone, alone, targets))
    packed = torch.stack(families.packed_log_probabilities(backbone, before, targets))
    tail, cache = behind(backbone, before, targets), backbone.new_cache()
    backbone.encode(before, cache)
    states = backbone.encode(tail, cache).last[tail.layout.role == MASK]
    cached = backbone.logits(states).log_softmax(-1)
    return float((packed - expected).abs().max()), float((cached - expected).abs().max())


@torch.no_grad()
def plain_rows(backbone: EncoderBackbone) -> float:
    """The time of plain rows through mmgen, as a share of that of transformers' own attention."""
    before = _rows(backbone)
    arguments = {"inputs_embeds": before.states, "position_ids": before.positions + backbone.first_position}

    def source() -> None:
        backbone.model.base_model(**arguments)

    ours = seconds(lambda: backbone.encode(before))
    with transformers_attention(backbone.model):
        theirs = seconds(source)
    return ours / theirs


def writing(model: Model) -> float:
    """How many times less time 20 tokens behind 100 slots take with a cache, greedily, than without."""
    caption = " ".join(TEXTS * SLOTS).split()[:SLOTS]
    examples = [Example(f"e{number}", {"caption": (" ".join(caption),)}, ("a",)) for number in range(ROWS)]
    times = []
    for caches in (True, False):
        model.backbone.caches = caches
        times.append(seconds(lambda: generate(model, examples, Decoding(min_new_tokens=WRITTEN - 1)), rounds=1))
    return times[1] / times[0]


def _rows(backbone: EncoderBackbone) -> Slots:
    return prefix(backbone, families.random_ids(backbone, ROWS, SLOTS).tolist())


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
