"""Java for caption metrics: finds it, words its errors, and runs Stanford's PTBTokenizer."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import Popen
from tempfile import TemporaryFile
from threading import Thread, Timer
from typing import Any

from mmgen.errors import UnavailableError

from .ptb import PUNCTUATION

TOKENIZER = Path("tokenizer", "stanford-corenlp-3.4.1.jar")
FENCE = "x"  # a line between texts: the lexer looks past a line's end for words that begin a sentence


def find_shipped_file(file: Path) -> Path:
    """A file inside the installed pycocoevalcap. Raises UnavailableError if the file is missing."""
    package = find_spec("pycocoevalcap")
    for folder in (package and package.submodule_search_locations) or ():
        if (Path(folder) / file).exists():
            return Path(folder) / file
    raise UnavailableError(f"{file.as_posix()} is missing from pycocoevalcap; reinstall pycocoevalcap")


def one_line(text: str) -> str:
    """The text on one line, without characters that UTF-8 cannot encode."""
    return " ".join(text.replace("\0", " ").splitlines()).encode("utf-8", "ignore").decode()


def error_line(stderr: str) -> str:
    """The line of Java's error output that names the error."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    error_lines = [line for line in lines if "Exception" in line or "Error" in line]
    return (error_lines or lines or ["no error message"])[0]


def tokenise_all(texts: Sequence[str], patience: float) -> list[list[str]]:
    """Words of every one-line text by Stanford's PTBTokenizer, lower-cased, without punctuation.

    A text's words do not depend on neighbouring texts, unlike those of texts on consecutive lines. Raises
    UnavailableError if Java is missing or fails.
    """
    lines = _tokenised(texts, patience)
    return [[word for word in line.strip(" ").split(" ") if word and word not in PUNCTUATION] for line in lines]


def _start(arguments: Sequence[str], folder: Path | None = None, stderr: Any = subprocess.PIPE) -> Popen[bytes]:
    """Start a Java program. Raises UnavailableError if Java is missing or does not start."""
    if (java := shutil.which("java")) is None:
        raise UnavailableError("no Java on this machine")
    try:
        pipe = subprocess.PIPE
        return Popen([java, *arguments], stdin=pipe, stdout=pipe, stderr=stderr, cwd=folder)
    except OSError as error:
        raise UnavailableError(f"cannot start Java: {error.strerror}") from None


class Program:
    """A Java program that answers each line with a line. It stays for later calls until this process ends: METEOR's
    program takes 8 s to read its tables."""

    def __init__(self, name: str, arguments: Sequence[str], folder: Path) -> None:
        self.name, self._errors = name, TemporaryFile()  # noqa: SIM115  # open as long as the program
        self.process = _start(arguments, folder, self._errors)

    def ask(self, lines: Sequence[str], patience: float) -> str:
        """The answers. Raises UnavailableError if the program fails or times out, and has ended."""
        limit, began, stdout = patience + len(lines) / 100, time.monotonic(), self.process.stdout
        timer, answers, failed = Timer(limit, self.process.kill), list[bytes](), True
        try:
            timer.start()
            Thread(target=self._write, args=(lines,), daemon=True).start()  # the pipes do not hold all lines
            while stdout and len(answers) < len(lines) and (answer := stdout.readline()):
                answers.append(answer)
            failed = len(answers) < len(lines) and self.process.wait() != 0
        finally:
            timer.cancel()
            if failed:
                self.process.kill()  # later calls would get the rest of the answers
        if failed and time.monotonic() - began >= limit:
            raise UnavailableError(f"{self.name} did not answer within {limit:.0f} s")
        if failed:
            self._errors.seek(0)
            raise UnavailableError(f"{self.name} failed: {error_line(self._errors.read().decode(errors='replace'))}")
        return b"".join(answers).decode(errors="replace")

    def _write(self, lines: Sequence[str]) -> None:
        with contextlib.suppress(OSError):  # the program has ended, which `ask` reports
            if stdin := self.process.stdin:
                stdin.write("".join(f"{line}\n" for line in lines).encode())
                stdin.flush()


_programs: dict[tuple[object, ...], Program] = {}


def program(name: str, arguments: Sequence[str], folder: Path) -> Program:
    """The running program with these arguments, or else a new one. Raises UnavailableError."""
    key = (os.getpid(), shutil.which("java"), *arguments)  # a fork needs pipes of its own
    if key not in _programs or _programs[key].process.poll() is not None:
        _programs[key] = Program(name, arguments, folder)
    return _programs[key]


def _tokenised(texts: Sequence[str], patience: float) -> list[str]:
    arguments = ["-cp", str(find_shipped_file(TOKENIZER)), "edu.stanford.nlp.process.PTBTokenizer"]
    arguments += ["-preserveLines", "-lowerCase", "-encoding", "UTF-8"]
    fenced = [line for text in texts for line in (text, FENCE)]
    try:
        process, limit = _start(arguments), patience + len(fenced) / 100
        output, stderr = process.communicate("".join(f"{line}\n" for line in fenced).encode(), limit)
    except subprocess.TimeoutExpired:
        process.kill()
        raise UnavailableError(f"Java's tokeniser did not answer within {limit:.0f} s") from None
    if process.returncode:
        raise UnavailableError(f"Java's tokeniser failed: {error_line(stderr.decode(errors='replace'))}")
    lines = output.decode(errors="replace").split("\n")
    if len(lines) == len(fenced) + 1:
        return lines[:-1:2]
    if len(texts) == 1:  # the text has a token that spans lines, such as a tag
        return [" ".join(lines).rstrip(" ").removesuffix(FENCE)]
    half = len(texts) // 2
    return _tokenised(texts[:half], patience) + _tokenised(texts[half:], patience)
