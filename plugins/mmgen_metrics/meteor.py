"""METEOR 1.5: its Java program matches the segments; the scores are computed here from the program's counts.

pycocoevalcap's own runner is not used, since it hangs after an error and on newlines. The program answers a line
`SCORE ||| reference ||| ... ||| hypothesis` with the statistics of the hypothesis and its best reference. A score is a
formula of the summed statistics, so an interval needs no Java.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from mmgen.errors import UnavailableError

from .java import error_line, find_shipped_file, java, one_line

PROGRAM = Path("meteor", "meteor-1.5.jar")
STATISTICS = 23  # numbers that describe a segment
ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75  # of METEOR 1.5 for English, task "rank": the program's defaults
STAGES = np.array([1.0, 0.6, 0.8, 0.6])  # weights of exact matches, stems, synonyms, paraphrases


def statistics(hypotheses: Sequence[str], references: Sequence[Sequence[str]], program: Program) -> np.ndarray:
    """(Q, 23) counts of Q segments. Texts are tokenised: words separated by spaces.

    Raises UnavailableError if Java or the program is missing, fails or times out.
    """
    requests = [
        " ||| ".join(["SCORE", *map(_clean, texts), _clean(hypothesis)])
        for hypothesis, texts in zip(hypotheses, references, strict=True)
    ]
    answers = program.ask(requests, len(requests))
    return np.array([_parse_statistics(line) for line in answers], np.float64).reshape(-1, STATISTICS)


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


def _parse_statistics(line: str) -> list[float]:
    try:
        numbers = [float(word) for word in line.split()]
    except ValueError:
        numbers = []
    if len(numbers) != STATISTICS or not np.isfinite(numbers).all():
        raise UnavailableError(f"METEOR's program returned {line!r} instead of statistics")
    return numbers


def _clean(text: str) -> str:
    """A text without the separators of the protocol: newlines, and the bars between fields."""
    return " ".join(one_line(text).replace("|||", " ").split())


class Program:
    """METEOR's Java program. It starts on the first request, which takes seconds, and runs until `close`.

    Its errors go to a file and a thread reads its answers, so that no pipe fills up. If the program is missing, fails
    or gives no answer for `patience` seconds, it is closed, and UnavailableError is raised."""

    def __init__(self, patience: float = 120.0):
        self.patience = patience
        self.process: subprocess.Popen[str] | None = None

    def _open(self) -> None:
        self.answers: queue.Queue[str | None] = queue.Queue()
        self.threads: list[threading.Thread] = []
        jar = find_shipped_file(PROGRAM)
        command = [java(), "-Xmx2G", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-jar", str(jar)]
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed in `close`)
        try:
            self.process = subprocess.Popen(
                [*command, "-", "-", "-stdio", "-l", "en", "-norm"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.stderr,
                cwd=jar.parent,
                encoding="utf-8",
                errors="replace",
            )
        except OSError as error:
            self.stderr.close()
            raise UnavailableError(f"cannot start Java: {error.strerror}") from None
        self._start(self._read)

    def close(self) -> None:
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()
        with contextlib.suppress(OSError):  # requests that the program did not read
            self._pipe(self.process.stdin).close()
        self._pipe(self.process.stdout).close()
        self.stderr.close()
        self.process = None

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self.threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self.threads[-1].start()

    def _read(self) -> None:
        assert self.process is not None  # `close` waits for this thread first
        for line in self._pipe(self.process.stdout):
            self.answers.put(line.rstrip("\n"))
        self.answers.put(None)

    def _write(self, requests: Sequence[str]) -> None:
        assert self.process is not None  # `close` waits for this thread first
        pipe = self._pipe(self.process.stdin)
        with contextlib.suppress(OSError):  # if the program has died, the reader reports it
            for request in requests:
                pipe.write(request + "\n")
            pipe.flush()

    @staticmethod
    def _pipe(end: IO[str] | None) -> IO[str]:
        assert end is not None  # both pipes were requested
        return end

    def ask(self, requests: Sequence[str], count: int) -> list[str]:
        """Send the requests while reading `count` lines of answers. Starts the program if it is not running, and ends
        it if an answer cannot be read."""
        if self.process is None or self.process.poll() is not None:  # the program may have died since
            self.close()
            self._open()
        try:
            return self._read_answers(requests, count)
        except BaseException:  # also Ctrl-C: outstanding answers must not be taken for those of a later request
            self.close()
            raise

    def _read_answers(self, requests: Sequence[str], count: int) -> list[str]:
        self._start(self._write, requests)
        lines = []
        for _ in range(count):
            try:
                line = self.answers.get(timeout=self.patience)
            except queue.Empty:
                raise UnavailableError(f"METEOR's program did not answer within {self.patience:g} s") from None
            if line is None or line.startswith("Error"):
                raise UnavailableError(f"METEOR's program failed: {line or self._stderr_line()}")
            lines.append(line)
        return lines

    def _stderr_line(self) -> str:
        assert self.process is not None  # a request was just sent
        self.process.kill()  # its output has ended, so its error output is complete
        self.process.wait()
        self.stderr.seek(0)
        return error_line(self.stderr.read().decode(errors="replace"))
