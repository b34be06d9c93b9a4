"""Reads pickles of plain values (lists, tables, strings, numbers) without running code.

A pickle is a program; a pickle that does more than such values need is refused before its first step.
"""

from __future__ import annotations

import io
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

from mmgen.errors import DataError
from mmgen.files import foreign
from mmgen.reading.text import read_unpacked

PICKLES = (".p", ".pkl", ".pickle")  # file name suffixes
MOST_BYTES = 1 << 28
MOST_STEPS = 1 << 25  # a step makes a value of at most some 100 bytes; RefCOCO's files have under ten million
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
        raise pickle.UnpicklingError(f"needs {module}.{name}")

    def persistent_load(self, id_: Any) -> NoReturn:
        raise pickle.UnpicklingError("needs an object outside the file")


def read_pickle(path: Path) -> Any:
    """The value of a pickle, also gzipped; strings of Python 2 are read as UTF-8. A value may occur several times, and
    inside itself: the caller must not recurse deeper than the expected form. Raises DataError with the wrong byte."""
    data = bytes(read_unpacked(path))
    if what := foreign(data):
        raise DataError(f"{path}: {what}")
    if len(data) > MOST_BYTES:
        raise DataError(f"{path}: over {MOST_BYTES >> 20} MB, too large for a file of expressions")
    _check_steps(data, path)
    try:
        return _Plain(io.BytesIO(data), encoding="utf-8").load()
    except Exception as error:  # a stack that does not fit its steps raises nearly anything
        why = str(error).partition("\n")[0] or type(error).__name__
        raise DataError(
            f"{path}: not a complete pickle of lists, tables and strings: {why}; download the file again"
        ) from None


def _check_steps(data: bytes, path: Path) -> None:
    """Raises DataError for steps that build anything but plain values, or reserve more memory than the file fills."""
    at = steps = 0
    try:
        for steps, (step, argument, place) in enumerate(pickletools.genops(data), 1):
            at = place or 0
            if step.name not in PLAIN:
                raise DataError(
                    f"{path}: byte {at}: the pickle has {step.name}, which lists, tables and strings do not need; the "
                    "pickle could execute arbitrary code, so mmgen does not open it"
                )
            if step.name in SLOTS and isinstance(argument, int) and not 0 <= argument <= steps:
                raise DataError(
                    f"{path}: byte {at}: stores value number {argument} after {steps} steps; the file is damaged"
                )
            if step.name == "FRAME" and isinstance(argument, int) and argument > len(data):
                raise DataError(
                    f"{path}: byte {at}: a frame of {argument} bytes in a file of {len(data)}; the file is damaged"
                )
            if steps > MOST_STEPS:
                raise DataError(f"{path}: byte {at}: over {MOST_STEPS:,} steps, too many for a file of expressions")
    except (ValueError, OverflowError) as error:
        raise DataError(
            f"{path}: not a pickle, or damaged after byte {at}: {str(error).partition(chr(10))[0]:.200}; download the "
            "file again"
        ) from None
