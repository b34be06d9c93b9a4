"""Errors that a person can cause; how they show untrusted text; did-you-mean; whose fault one is."""

from __future__ import annotations

import contextlib
import difflib
import importlib.metadata
import os
import traceback
import unicodedata
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

SHOW_TRACEBACK = "MMGEN_TRACEBACK"  # environment variable
LONGEST_LINE = 800  # characters
JOINERS = "\u200c\u200d"  # without a width of their own; Persian, Hindi and emoji are written with them


class MmgenError(Exception):
    """An error that a person can correct: place, problem and remedy, one line each, printed without a traceback.

    Text from untrusted files is made safe: control characters are escaped, and over-long lines are cut in the middle.

    about  the key of the recipe that the error is about, if its text does not say so: ("objectives", "regions")
    """

    def __init__(self, message: str = "", about: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.about = about

    def __str__(self) -> str:
        return shown(super().__str__())


def shown(text: str) -> str:
    """A text from outside, safe for a terminal: printable lines of limited length."""
    half = LONGEST_LINE // 2
    lines = printable(text).split("\n")
    return "\n".join(line if len(line) <= LONGEST_LINE else f"{line[:half]} [...] {line[-half:]}" for line in lines)


def printable(text: str) -> str:
    """The text with control characters escaped: escape sequences, colours, changes of direction, half characters. Line
    ends stay."""
    return "".join(
        letter
        if letter.isprintable() or letter in f"\n{JOINERS}" or unicodedata.category(letter) == "Zs"
        else ascii(letter)[1:-1]
        for letter in text
    )


def install_extra(extra: str) -> str:
    """The command that installs an extra of mmgen. It names a checkout: mmgen is on no package index, where anybody
    could register its name."""
    return f'in a checkout of mmgen, run: pip install ".[{extra}]"'


def did_you_mean(name: str, names: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean '{close[0]}'?" if close else ""


def unknown(name: str, names: Collection[str]) -> str:
    """Why a name is wrong that is not among `names`; "" if it is."""
    return "" if name in names else f"unknown name '{name}'{did_you_mean(name, names)}; choose from: {', '.join(names)}"


@contextlib.contextmanager
def placed(path: Path) -> Iterator[None]:
    """Puts a file in front of the errors of what it describes, such as a model's parts, unless they name its folder."""
    try:
        yield
    except MmgenError as error:
        if str(path.parent) in str(error):
            raise
        raise type(error)(f"{path}: {error}") from None


def blame(error: BaseException) -> str:
    """An exception out of a plugin in one line: its package or file, the function, file:line, and what was raised; ""
    if no code of a plugin was running. With MMGEN_TRACEBACK=1 the traceback is printed."""
    packages, place = _packages(), ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        module, file = str(frame.f_globals.get("__name__", "")).split("."), Path(frame.f_code.co_filename).name
        if package := packages.get(module[0], frame.f_globals.get("MMGEN_FILE")):
            path = "/".join([*(module if file == "__init__.py" else module[:-1]), file])
            place = f"{package}, {frame.f_code.co_qualname} ({path}:{line})"
    if not place:
        return ""
    if os.environ.get(SHOW_TRACEBACK):
        traceback.print_exception(error)
    text = " ".join(str(error).split())
    return f"{place}: {type(error).__name__}{f': {text}' * bool(text)} ({SHOW_TRACEBACK}=1 prints the traceback)"


def as_mmgen_error(error: Exception) -> MmgenError | None:
    """An error as a person is to see it, if it is one of mmgen's, of the system, or out of a plugin."""
    if isinstance(error, MmgenError):
        return error
    if isinstance(error, OSError):
        place = error.filename or "standard output or an output file"
        return RunError(f"{place}: {error.strerror}" if error.errno else str(error))
    return PluginError(line) if (line := blame(error)) else None


def _packages() -> dict[str, str]:
    """Packages of plugins -> their distribution and its version."""
    entries = importlib.metadata.entry_points(group="mmgen")
    return {
        entry.module.partition(".")[0]: f"{entry.dist.name} {entry.dist.version}" for entry in entries if entry.dist
    }


class RecipeError(MmgenError):
    """One or several mistakes in a recipe; each line names the place and the remedy."""


class PluginError(MmgenError):
    """A plugin that cannot be loaded, is ambiguous, or breaks its contract."""


class DataError(MmgenError):
    """Files that are missing, damaged, or do not fit together."""


class MissingInput(DataError):
    """An example that lacks what a reader of an input reads."""


class RunError(MmgenError):
    """A run folder that cannot be used: of a different recipe, damaged, or without the requested step."""


class UnavailableError(MmgenError):
    """Something optional that this machine lacks (Java for METEOR, say)."""
