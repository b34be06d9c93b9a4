"""METEOR 1.5, by its own Java program: a guarded runner, since pycocoevalcap's hangs after an error and on newlines.

The program answers lines: `SCORE ||| reference ||| ... ||| hypothesis` with a segment's statistics, and
`EVAL ||| statistics ||| ...` with every segment's score and, last, the score of all of them together.
"""

from __future__ import annotations

import contextlib
import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from mmgen.errors import UnavailableError

from .java import complaint, java, one_line, shipped

PROGRAM = Path("meteor", "meteor-1.5.jar")
STATISTICS = 23  # numbers that describe a segment


def meteor(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], patience: float = 120.0
) -> tuple[float, list[float]]:
    """The score of all segments together, and of each; 0 to 1. Texts are words parted by spaces, already tokenised.

    Raises UnavailableError when Java or the program is missing, fails, or gives no answer for `patience` seconds.
    """
    requests = [
        " ||| ".join(["SCORE", *map(_clean, texts), _clean(hypothesis)])
        for hypothesis, texts in zip(hypotheses, references, strict=True)
    ]
    with _Program(patience) as program:
        statistics = program.ask(requests, len(requests))
        for line in statistics:
            if len(line.split()) != STATISTICS:
                raise UnavailableError(f"METEOR's program answered {line!r} instead of statistics")
        answers = program.ask([" ||| ".join(["EVAL", *statistics])], len(requests) + 1)
    try:
        *each, together = [float(line) for line in answers]
    except ValueError:
        raise UnavailableError(f"METEOR's program answered {answers[-1]!r} instead of a score") from None
    return together, each


def _clean(text: str) -> str:
    """Nothing that the protocol would take for its own: newlines, and bars that part the fields."""
    return " ".join(one_line(text).replace("|||", " ").split())


class _Program:
    """The running program. Its errors go to a file and its answers through a thread, so that no pipe ever fills up."""

    def __init__(self, patience: float):
        self.patience = patience
        self.answers: queue.Queue[str | None] = queue.Queue()
        self.threads: list[threading.Thread] = []

    def __enter__(self) -> _Program:
        jar = shipped(PROGRAM)
        command = [java(), "-Xmx2G", "-Dfile.encoding=UTF-8", "-Dstdout.encoding=UTF-8", "-jar", str(jar)]
        self.stderr = tempfile.TemporaryFile()  # noqa: SIM115 (closed in __exit__)
        try:
            self.process = subprocess.Popen(
                [*command, "-", "-", "-stdio", "-l", "en", "-norm"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.stderr, cwd=jar.parent,
                encoding="utf-8", errors="replace",
            )  # fmt: skip
        except OSError as error:
            self.stderr.close()
            raise UnavailableError(f"Java cannot be started: {error.strerror}") from None
        self._start(self._read)
        return self

    def __exit__(self, *exception: object) -> None:
        self.process.kill()
        self.process.wait()
        for thread in self.threads:
            thread.join()
        with contextlib.suppress(OSError):  # what it did not live to read
            self.process.stdin.close()
        self.process.stdout.close()
        self.stderr.close()

    def _start(self, work: Callable[..., None], *arguments: object) -> None:
        self.threads.append(threading.Thread(target=work, args=arguments, daemon=True))
        self.threads[-1].start()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.answers.put(line.rstrip("\n"))
        self.answers.put(None)

    def _write(self, requests: Sequence[str]) -> None:
        with contextlib.suppress(OSError):  # when it has died, the reader will tell
            for request in requests:
                self.process.stdin.write(request + "\n")
            self.process.stdin.flush()

    def ask(self, requests: Sequence[str], answers: int) -> list[str]:
        """Sends the requests while reading that many lines of answers."""
        self._start(self._write, requests)
        lines = []
        for _ in range(answers):
            try:
                line = self.answers.get(timeout=self.patience)
            except queue.Empty:
                raise UnavailableError(f"METEOR's program gave no answer for {self.patience:g} s") from None
            if line is None or line.startswith("Error"):
                raise UnavailableError(f"METEOR's program failed: {line or self._last_words()}")
            lines.append(line)
        return lines

    def _last_words(self) -> str:
        self.process.kill()  # its output has ended, and so has what it had to say
        self.process.wait()
        self.stderr.seek(0)
        return complaint(self.stderr.read().decode(errors="replace"))
