"""Pickles of plain values (lists, tables, texts, numbers), read without running anything: a pickle is a program, and
one that does more than such values need is refused before its first step."""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from mmgen.errors import DataError
from mmgen.reading.text import read_unpacked

PICKLES = (".p", ".pkl", ".pickle")  # how their names end
MOST_BYTES = 1 << 28
MOST_STEPS = 1 << 25  # each makes a value of at most some 100 bytes; RefCOCO's files have under ten million
PLAIN = frozenset(
    """
    PROTO FRAME STOP MARK POP POP_MARK MEMOIZE PUT BINPUT LONG_BINPUT GET BINGET LONG_BINGET
    EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS NONE NEWTRUE NEWFALSE
    INT BININT BININT1 BININT2 LONG LONG1 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE
    """.split()
)
SLOTS = ("PUT", "BINPUT", "LONG_BINPUT")


class _Plain(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"asks for {module}.{name}")

    def persistent_load(self, id_: Any) -> NoReturn:
        raise pickle.UnpicklingError("asks for what lies elsewhere")


def read_pickle(path: Path) -> Any:
    """The value of a pickle, also gzipped; texts of Python 2 are taken for UTF-8. Values may stand in it several times,
    and inside themselves: who reads it goes no deeper than its form. Raises DataError with the byte that is wrong."""
    data = bytes(read_unpacked(path))
    if len(data) > MOST_BYTES:
        raise DataError(f"{path}: over {MOST_BYTES >> 20} MB; that is no file of expressions")
    _check(data, path)
    try:
        return _Plain(io.BytesIO(data), encoding="utf-8").load()
    except Exception as error:  # a stack that does not fit its steps raises nearly anything
        why = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(f"{path}: not a whole pickle of lists, tables and texts: {why}; get it again") from None


def _check(data: bytes, path: Path) -> None:
    """Raises DataError for steps that make anything but plain values, or ask for more memory than they bring."""
    at = steps = 0
    try:
        for steps, (step, argument, place) in enumerate(pickletools.genops(data), 1):
            at = place or 0
            if step.name not in PLAIN:
                raise DataError(
                    f"{path}: byte {at}: the pickle has {step.name}, which lists, tables and texts do not need; it "
                    "might run a program, so it is not opened"
                )
            if step.name in SLOTS and isinstance(argument, int) and not 0 <= argument <= steps:
                raise DataError(f"{path}: byte {at}: keeps a value as number {argument} after {steps} steps; damaged")
            if step.name == "FRAME" and isinstance(argument, int) and argument > len(data):
                raise DataError(f"{path}: byte {at}: a frame of {argument} bytes in a file of {len(data)}; damaged")
            if steps > MOST_STEPS:
                raise DataError(f"{path}: byte {at}: over {MOST_STEPS:,} steps; that is no file of expressions")
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: not a pickle, or damaged behind byte {at}: {str(error).partition(chr(10))[0]:.200}; get it again"
        ) from None
