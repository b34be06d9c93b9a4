"""Java for caption metrics: finds it, words its errors, and runs Stanford's PTBTokenizer."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

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


def run(name: str, arguments: Sequence[str], lines: Sequence[str], patience: float, folder: Path | None = None) -> str:
    """What a Java program prints for these lines of input. `name`: the program's, for errors.

    Raises UnavailableError if Java is missing, fails or times out."""
    if (java := shutil.which("java")) is None:
        raise UnavailableError("no Java on this machine")
    text, timeout = "".join(f"{line}\n" for line in lines), patience + len(lines) / 100
    try:
        process = subprocess.run(
            [java, *arguments], input=text.encode(), capture_output=True, timeout=timeout, cwd=folder
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f"{name} did not answer within {timeout:.0f} s") from None
    except OSError as error:
        raise UnavailableError(f"cannot start Java: {error.strerror}") from None
    if process.returncode:
        raise UnavailableError(f"{name} failed: {error_line(process.stderr.decode(errors='replace'))}")
    return process.stdout.decode(errors="replace")


def _tokenised(texts: Sequence[str], patience: float) -> list[str]:
    arguments = ["-cp", str(find_shipped_file(TOKENIZER)), "edu.stanford.nlp.process.PTBTokenizer"]
    arguments += ["-preserveLines", "-lowerCase", "-encoding", "UTF-8"]
    fenced = [line for text in texts for line in (text, FENCE)]
    lines = run("Java's tokeniser", arguments, fenced, patience).split("\n")
    if len(lines) == len(fenced) + 1:
        return lines[:-1:2]
    if len(texts) == 1:  # the text has a token that spans lines, such as a tag
        return [" ".join(lines).rstrip(" ").removesuffix(FENCE)]
    half = len(texts) // 2
    return _tokenised(texts[:half], patience) + _tokenised(texts[half:], patience)
