"""METEOR 1.5: its Java program matches the segments; the scores are computed here from the program's counts.

pycocoevalcap's own runner is not used, since it hangs after an error and on newlines. The program answers a line
`SCORE ||| reference ||| ... ||| hypothesis` with the statistics of the hypothesis and its best reference. A score is a
formula of the summed statistics, so an interval needs no Java.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from mmgen.errors import UnavailableError

from . import java

PROGRAM = Path("meteor", "meteor-1.5.jar")
STATISTICS = 23  # numbers that describe a segment
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75  # of METEOR 1.5 for English, task "rank": the program's defaults
STAGES = np.array([1.0, 0.6, 0.8, 0.6])  # weights of exact matches, stems, synonyms, paraphrases


def statistics(hypotheses: Sequence[str], references: Sequence[Sequence[str]], patience: float) -> np.ndarray:
    """(Q, 23) counts of Q segments, by the program. Texts are tokenised: words separated by spaces.

    Raises UnavailableError if Java or the program is missing, fails or times out.
    """
    requests = [
        " ||| ".join(["SCORE", *map(_clean, texts), _clean(hypothesis)])
        for hypothesis, texts in zip(hypotheses, references, strict=True)
    ]
    jar = java.find_shipped_file(PROGRAM)
    arguments = ["-Xmx2G", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-jar", str(jar)]
    arguments += ["-", "-", "-stdio", "-l", "en", "-norm"]
    output = java.program("METEOR's program", arguments, jar.parent).ask(requests, patience)
    try:
        counts = np.array([line.split() for line in output.splitlines()], np.float64)
    except ValueError:
        counts = np.empty(0)
    if counts.shape != (len(requests), STATISTICS) or not np.isfinite(counts).all():
        raise UnavailableError(f"METEOR's program returned {output[:60]!r} instead of statistics")
    return counts


def summands(counts: np.ndarray) -> np.ndarray:
    """(Q, 6) what METEOR's score is computed from, of the program's counts (Q, 23): weighted words of hypothesis and
    reference, weighted matches in both, chunks, and matched words. The counts are words and function words of both;
    matches of content and function words in both, by stage; chunks; matched words of both (Denkowski and Lavie, 2014,
    section 2). A text that equals its reference word by word has no chunks, as in the program's EVAL command."""
    identical = (counts[:, 20] == 1) & (counts[:, 21] == counts[:, 0]) & (counts[:, 22] == counts[:, 1])
    words = DELTA * (counts[:, 0:2] - counts[:, 2:4]) + (1 - DELTA) * counts[:, 2:4]
    matches = counts[:, 4:20].reshape(-1, 4, 2, 2)  # stage, content or function, hypothesis or reference
    matched = np.einsum("s,qskt,k->qt", STAGES, matches, np.array([DELTA, 1 - DELTA]))
    chunks = np.where(identical, 0, counts[:, 20])
    return np.column_stack([words, matched, chunks, counts[:, 21:23].mean(1)])


def meteor(sums: np.ndarray) -> np.ndarray:
    """Scores (...), from 0 to 1, of `summands` (..., 6) of a segment or summed over segments; equal to those of the
    program's EVAL command."""
    with np.errstate(divide="ignore", invalid="ignore"):
        precision, recall = np.moveaxis(sums[..., 2:4] / sums[..., 0:2], -1, 0)
        mean = precision * recall / (ALPHA * precision + (1 - ALPHA) * recall)
        fragmentation = sums[..., 4] / sums[..., 5]
        scores: np.ndarray = np.nan_to_num(mean * (1 - GAMMA * fragmentation**BETA), nan=0.0)
    return scores


def _clean(text: str) -> str:
    """A text without the separators of the protocol: newlines, and the bars between fields."""
    return " ".join(java.one_line(text).replace("|||", " ").split())
