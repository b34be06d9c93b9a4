"""Reading the key and the filled sheets of several judges; what is wrong with any of them is said in one line each."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mmgen.errors import DataError, regular

from .form import FILLED, HIGHEST, KEY, LOWEST


@dataclass(frozen=True)
class Answers:
    """The key, and what J judges gave its Q questions.

    ratings    criterion -> (J, Q) floats from 1 to 5, NaN where a judge gave none
    questions  system -> (I,) places among the Q questions, one for each of I pictures
    """

    judges: tuple[str, ...]
    criteria: tuple[str, ...]
    systems: tuple[str, ...]
    human: str
    ratings: Mapping[str, np.ndarray]
    questions: Mapping[str, np.ndarray]


def read(key_path: Path, sheets: Sequence[Path], partial: bool = False) -> Answers:
    """Raises DataError with all that is wrong. `partial`: ratings may be missing."""
    key = _key(key_path)
    ids = [question["id"] for question in key["questions"]]
    problems: list[str] = []
    filled: dict[str, tuple[Path, Mapping[str, Mapping[str, int]]]] = {}
    for path in sheets:
        try:
            judge, ratings = _sheet(path, key, key_path, ids, partial)
        except DataError as error:
            problems.append(str(error))
            continue
        same = next((other for other in filled if other.casefold() == judge.casefold()), None)
        if same is not None:
            problems.append(f"{path}: by the same judge as {filled[same][0]} ({judge}); give one sheet a judge")
        else:
            filled[judge] = (path, ratings)
    if problems:
        raise DataError("\n".join(problems))
    table = {
        criterion: np.array(
            [[ratings.get(own, {}).get(criterion, np.nan) for own in ids] for _, ratings in filled.values()], np.float64
        )
        for criterion in key["criteria"]
    }
    places = {
        system: np.array([place for place, question in enumerate(key["questions"]) if system in question["systems"]])
        for system in key["systems"]
    }
    return Answers(tuple(filled), tuple(key["criteria"]), tuple(key["systems"]), key["human"], table, places)


def _json(path: Path) -> Any:
    try:
        return json.loads(regular(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DataError(
            f"{path}: not JSON; give the key, then the files that the judges have saved from the page"
        ) from None


def _key(path: Path) -> dict[str, Any]:
    key = _json(path)
    if not isinstance(key, dict) or key.get("format") != KEY:
        raise DataError(f"{path}: no key; give the .key.json that `mmgen judge make` wrote, before the sheets")
    try:
        wanted = {system for question in key["questions"] for system in question["systems"]}
        whole = wanted == set(key["systems"]) and key["human"] in wanted and key["criteria"] and key["sheet"]
        pictures = [[each["example"] for each in key["questions"] if own in each["systems"]] for own in key["systems"]]
        whole = whole and len({question["id"] for question in key["questions"]}) == len(key["questions"])
        whole = whole and all(
            own == pictures[0] == list(dict.fromkeys(own)) for own in pictures
        )  # one each, in one order
    except (KeyError, TypeError):
        whole = False
    if not whole:
        raise DataError(f"{path}: the key is damaged; make it again with the same runs, --n and --seed")
    return key


def _sheet(
    path: Path, key: Mapping[str, Any], key_path: Path, ids: Sequence[str], partial: bool
) -> tuple[str, Mapping[str, Mapping[str, int]]]:
    """The judge's name and ratings."""
    sheet = _json(path)
    if not isinstance(sheet, dict) or sheet.get("format") != FILLED or not isinstance(sheet.get("ratings"), dict):
        raise DataError(f"{path}: no filled sheet; give the file that the page saves")
    if sheet.get("sheet") != key["sheet"]:
        raise DataError(f"{path}: a sheet of another key (sheet {sheet.get('sheet')}; {key_path} is of {key['sheet']})")
    judge = sheet.get("judge")
    if not isinstance(judge, str) or not judge.strip():
        raise DataError(f'{path}: no judge\'s name; write one under "judge"')
    known = set(ids)
    for own, given in sheet["ratings"].items():
        if own not in known or not isinstance(given, dict) or not given.keys() <= set(key["criteria"]):
            raise DataError(f"{path}: rates what is not on the sheet ({own}); was it edited?")
        for criterion, value in given.items():
            if type(value) is not int or not LOWEST <= value <= HIGHEST:
                raise DataError(
                    f"{path}: {criterion} of {own} is {json.dumps(value)[:20]}; ratings are whole numbers from "
                    f"{LOWEST} to {HIGHEST}"
                )
    wanted = [(own, criterion) for criterion in key["criteria"] for own in ids]
    missing = [each for each in wanted if each[1] not in sheet["ratings"].get(each[0], {})]
    if missing and not partial:
        own, criterion = missing[0]
        raise DataError(
            f"{path}: {len(missing)} of {len(wanted)} ratings are missing (first: {criterion} of {own}); have it "
            "filled, or --partial"
        )
    return judge.strip(), sheet["ratings"]
