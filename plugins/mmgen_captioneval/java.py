"""The programs that need Java: where it is, and Stanford's PTBTokenizer run on texts."""

from __future__ import annotations

import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from mmgen.errors import UnavailableError

from .ptb import PUNCTUATION

TOKENIZER = Path("tokenizer", "stanford-corenlp-3.4.1.jar")
FENCE = "x"  # a line between texts: the lexer looks over the line's end, at words that begin a sentence


def java() -> str:
    """The Java to run. Raises UnavailableError when there is none."""
    found = shutil.which("java")
    if found is None:
        raise UnavailableError("no Java on this machine")
    return found


def shipped(file: Path) -> Path:
    """A file that pycocoevalcap brings along. Raises UnavailableError when it is not there."""
    package = find_spec("pycocoevalcap")
    for folder in (package and package.submodule_search_locations) or ():
        if (Path(folder) / file).exists():
            return Path(folder) / file
    raise UnavailableError(f"pycocoevalcap comes without {file.as_posix()}; reinstall it")


def one_line(text: str) -> str:
    """A text on one line, of characters that can be written as UTF-8."""
    return " ".join(text.replace("\0", " ").splitlines()).encode("utf-8", "ignore").decode()


def complaint(stderr: str) -> str:
    """The line that says what went wrong, of all that Java wrote."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    telling = [line for line in lines if "Exception" in line or "Error" in line]
    return (telling or lines or ["it said nothing"])[0]


def tokenise_all(texts: list[str], patience: float) -> list[list[str]]:
    """Words of every text (each on one line) by Stanford's PTBTokenizer, lower-cased, without punctuation.

    A text's words do not depend on its neighbours, as they do when texts are simply written under one another.
    Raises UnavailableError when Java is not there or fails.
    """
    lines = _run(texts, patience)
    return [[word for word in line.strip(" ").split(" ") if word and word not in PUNCTUATION] for line in lines]


def _run(texts: list[str], patience: float) -> list[str]:
    command = [java(), "-cp", str(shipped(TOKENIZER)), "edu.stanford.nlp.process.PTBTokenizer"]
    command += ["-preserveLines", "-lowerCase", "-encoding", "UTF-8"]
    fenced = "".join(f"{text}\n{FENCE}\n" for text in texts)
    try:
        done = subprocess.run(command, input=fenced.encode(), capture_output=True, timeout=patience + len(texts) / 1000)
    except subprocess.TimeoutExpired as error:
        raise UnavailableError(f"Java's tokeniser gave no answer in {error.timeout:.0f} s") from None
    except OSError as error:
        raise UnavailableError(f"Java cannot be started: {error.strerror}") from None
    if done.returncode:
        raise UnavailableError(f"Java's tokeniser failed: {complaint(done.stderr.decode(errors='replace'))}")
    lines = done.stdout.decode().split("\n")
    if len(lines) == 2 * len(texts) + 1:
        return lines[:-1:2]
    if len(texts) == 1:  # something in the text reached over its line, a tag say
        return [" ".join(lines).rstrip(" ").removesuffix(FENCE)]
    half = len(texts) // 2
    return _run(texts[:half], patience) + _run(texts[half:], patience)
