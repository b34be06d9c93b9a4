"""Reads the key of a sheet and the filled sheets of several judges; every error is one line."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.errors import DataError
from mmgen.reading.text import join_names

from .form import FILLED, HIGHEST, KEY, LOWEST


@dataclass(frozen=True)
class Answers:
    """The key, and the ratings that J judges gave its Q questions.

    ratings    criterion -> (J, Q) floats from 1 to 5, NaN for a missing rating
    questions  system -> (I,) indices of the system's questions among the Q, one for each of I pictures
    programs   the judges that are programs
    """

    judges: tuple[str, ...]
    criteria: tuple[str, ...]
    systems: tuple[str, ...]
    human: str
    ratings: Mapping[str, np.ndarray]
    questions: Mapping[str, np.ndarray]
    programs: frozenset[str] = frozenset()


def read(key_path: Path, sheets: Sequence[Path], partial: bool = False) -> Answers:
    """Read the key and all sheets. `partial`: ratings may be missing. Raises DataError, a line for each bad sheet."""
    key = _read_key(key_path)
    ids = [question["id"] for question in key["questions"]]
    problems: list[str] = []
    filled: dict[str, tuple[Path, Mapping[str, Mapping[str, int]]]] = {}
    programs: set[str] = set()
    for path in sheets:
        try:
            judge, ratings, is_program = _read_sheet(path, key, key_path, ids, partial)
        except DataError as error:
            problems.append(str(error))
            continue
        duplicate = next((name for name in filled if name.casefold() == judge.casefold()), None)
        if duplicate is not None:
            problems.append(
                f"{path}: by the same judge as {filled[duplicate][0]} ({join_names([judge])}); give one sheet per judge"
            )
        else:
            filled[judge] = (path, ratings)
            programs |= {judge} if is_program else set()
    if problems:
        raise DataError("\n".join(problems))
    table = {
        criterion: np.array(
            [
                [ratings.get(question_id, {}).get(criterion, np.nan) for question_id in ids]
                for _, ratings in filled.values()
            ],
            np.float64,
        )
        for criterion in key["criteria"]
    }
    places = {
        system: np.array([place for place, question in enumerate(key["questions"]) if system in question["systems"]])
        for system in key["systems"]
    }
    criteria, systems = tuple(key["criteria"]), tuple(key["systems"])
    return Answers(tuple(filled), criteria, systems, key["human"], table, places, frozenset(programs))


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DataError(
            f"{path}: not JSON; give the key first, then the files that judges saved from the page"
        ) from None


def _read_key(path: Path) -> dict[str, Any]:
    key = _read_json(path)
    if not isinstance(key, dict) or key.get("format") != KEY:
        raise DataError(f"{path}: not a key; give the .key.json from `mmgen judge make` before the sheets")
    try:
        systems = {system for question in key["questions"] for system in question["systems"]}
        valid = systems == set(key["systems"]) and key["human"] in systems and key["criteria"] and key["sheet"]
        examples_by_system = [
            [question["example"] for question in key["questions"] if system in question["systems"]]
            for system in key["systems"]
        ]
        valid = valid and isinstance(key["criteria"], list) and all(isinstance(name, str) for name in key["criteria"])
        valid = valid and len({question["id"] for question in key["questions"]}) == len(key["questions"])
        valid = valid and all(
            examples == examples_by_system[0] == list(dict.fromkeys(examples)) for examples in examples_by_system
        )  # every system has each example once, in the same order
    except (KeyError, TypeError):
        valid = False
    if not valid:
        raise DataError(f"{path}: the key is damaged; create it again with the same runs, --n and --seed")
    return key


def _read_sheet(
    path: Path, key: Mapping[str, Any], key_path: Path, ids: Sequence[str], partial: bool
) -> tuple[str, Mapping[str, Mapping[str, int]], bool]:
    """The judge's name and ratings, and whether the judge is a program."""
    sheet = _read_json(path)
    if not isinstance(sheet, dict) or sheet.get("format") != FILLED or not isinstance(sheet.get("ratings"), dict):
        raise DataError(f"{path}: not a filled sheet; give the file that the page saves")
    if sheet.get("sheet") != key["sheet"]:
        raise DataError(
            f"{path}: belongs to sheet {join_names([sheet.get('sheet')])}, but {key_path} is the key of sheet "
            f"{join_names([key['sheet']])}; use matching files"
        )
    judge = sheet.get("judge")
    if not isinstance(judge, str) or not judge.strip():
        raise DataError(f'{path}: the judge\'s name is missing; add it as "judge"')
    known = set(ids)
    for question_id, ratings in sheet["ratings"].items():
        if question_id not in known or not isinstance(ratings, dict) or not ratings.keys() <= set(key["criteria"]):
            raise DataError(
                f"{path}: ratings of {join_names([question_id])} do not match the sheet; use the file as the page "
                "saved it"
            )
        for criterion, value in ratings.items():
            if type(value) is not int or not LOWEST <= value <= HIGHEST:
                raise DataError(
                    f"{path}: {join_names([criterion])} of {join_names([question_id])} is {json.dumps(value)[:20]}; "
                    f"ratings are whole numbers from {LOWEST} to {HIGHEST}"
                )
    required = [(question_id, criterion) for criterion in key["criteria"] for question_id in ids]
    missing = [pair for pair in required if pair[1] not in sheet["ratings"].get(pair[0], {})]
    if missing and not partial:
        question_id, criterion = missing[0]
        raise DataError(
            f"{path}: {len(missing)} of {len(required)} ratings are missing (first: {join_names([criterion])} of "
            f"{join_names([question_id])}); complete the sheet, or use --partial"
        )
    return judge.strip(), sheet["ratings"], sheet.get("program") is True
