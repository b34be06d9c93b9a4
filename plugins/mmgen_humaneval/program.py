"""Programs as judges: a sheet as a file of requests, and a file of ratings as a filled sheet.

Both files are JSON lines. The requests begin with a header, and have a line for each picture and for each rating:

    {"format": "mmgen judge requests 1", "sheet": "...", "criteria": ["clarity", ...]}
    {"picture": "<hash>", "url": "data:image/jpeg;base64,..."}
    {"key": "<hash>", "id": "1-2", "criterion": "clarity", "prompt": "...", "picture": "<hash>" or null}

The key is a hash of prompt and picture, so that a rating can be used again wherever the same is requested. A line of
ratings is {"key": "<hash>", "rating": 1 to 5, "model": "..."}; its other fields are ignored.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.files import json_problem, write_json, write_text

from .criteria import CRITERIA
from .form import FILLED, HIGHEST, LOWEST

REQUESTS = "mmgen judge requests 1"
DATA = re.compile(r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL)
DIGITS = 32  # of hashes
PROMPT = """\
You rate a question about a picture, on one criterion alone.

{meaning}.
{ask} Rate from {low} ({lowest}) to {high} ({highest}).
{context}
Question: {question}

Reply with one whole number from {low} to {high}, and nothing else."""


@dataclass(frozen=True)
class Filled:
    """A filled sheet of a program: how many ratings it has and how many are missing."""

    judge: str
    ratings: int
    missing: int


def write_requests(page: Path, out: Path) -> int:
    """Write the requests of a sheet; the number of ratings that they ask for. They name no system. Raises DataError."""
    sheet = _read_page(page)
    rounds = [(judging_round["shows"], judging_round["criteria"]) for judging_round in sheet["rounds"]]
    names = [name for _, names in rounds for name in names]
    lines: list[Mapping[str, Any]] = [{"format": REQUESTS, "sheet": sheet["sheet"], "criteria": names}]
    for item in sheet["items"]:
        shot = item["shot"][0] if item.get("shot") else None
        picture = _hash_of(shot) if shot else None
        if picture:
            lines.append({"picture": picture, "url": shot})
        for shows, criteria in rounds:
            seen = picture if "picture" in shows else None
            for question in item["questions"]:
                for name in criteria:
                    prompt = _prompt_for(name, question["text"], {key: item[key] for key in shows if key != "picture"})
                    key = _hash_of(f"{prompt}\n{seen or ''}")
                    lines.append(
                        {"key": key, "id": question["id"], "criterion": name, "prompt": prompt, "picture": seen}
                    )
    write_text(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines))
    return sum("key" in line for line in lines)


def fill(requests: Path, ratings: Path, judge: str, out: Path) -> Filled:
    """Write the filled sheet of a program from its ratings. `judge`: its name; by default the model of the ratings.
    Raises DataError."""
    header, entries = _read_requests(requests)
    rated, models = _read_ratings(ratings, {request["key"] for _, request in entries})
    if not rated:
        raise DataError(f"{ratings}: rates nothing of {requests}; give the ratings of these requests")
    if not judge and len(models) != 1:
        names = ", ".join(f"{model!r:.60}" for model in models)
        named = f"ratings by {len(models)} models ({names})" if models else 'no "model" in the lines'
        raise DataError(f"{ratings}: {named}; give ratings by one model, and its name with --judge")
    filled: dict[str, dict[str, int]] = {}
    for _, request in entries:
        if request["key"] in rated:
            filled.setdefault(request["id"], {})[request["criterion"]] = rated[request["key"]]
    name = judge or models[0]
    write_json(out, {"format": FILLED, "sheet": header["sheet"], "judge": name, "program": True, "ratings": filled})
    count = sum(len(by_criterion) for by_criterion in filled.values())
    return Filled(name, count, len(entries) - count)


def _prompt_for(name: str, question: str, context: Mapping[str, str]) -> str:
    criterion = CRITERIA[name]
    shown = "".join(f"\n{thing.capitalize()}: {text}" for thing, text in context.items())
    return PROMPT.format(
        meaning=criterion.meaning,
        ask=criterion.question,
        low=LOWEST,
        high=HIGHEST,
        lowest=criterion.lowest,
        highest=criterion.highest,
        context=shown,
        question=question or "(nothing was written)",
    )


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:DIGITS]


def _read_page(path: Path) -> dict[str, Any]:
    """The data of a sheet's page."""
    match = DATA.search(_read_text(path))
    data: Any = None
    with contextlib.suppress(ValueError, RecursionError):
        data = json.loads(match[1]) if match else None
    if not isinstance(data, dict) or data.get("format") != FILLED:
        raise DataError(f"{path}: not a sheet; give the .html file from `mmgen judge make`")
    try:
        _check_page(data)
    except (ValueError, TypeError, KeyError):
        raise DataError(f"{path}: the sheet is damaged; make it again with `mmgen judge make`") from None
    return data


def _check_page(data: Mapping[str, Any]) -> None:
    """Raises ValueError, TypeError or KeyError for the data of a damaged sheet."""
    rounds = [(judging_round["shows"], judging_round["criteria"]) for judging_round in data["rounds"]]
    shown = [name for shows, _ in rounds for name in _check_strings(shows) if name != "picture"]
    if not CRITERIA.keys() >= {name for _, criteria in rounds for name in _check_strings(criteria)}:
        raise ValueError
    questions = [question for item in data["items"] for question in item["questions"]]
    ids = _check_strings([question["id"] for question in questions])
    _check_strings([data["sheet"], *(question["text"] for question in questions)])
    for item in data["items"]:
        _check_strings([*(item[name] for name in shown), *([item["shot"][0]] if item.get("shot") else [])])
    if len({*ids}) < len(ids):
        raise ValueError


def _check_strings(values: list[Any]) -> list[str]:
    """The values, which are strings that can be written. Raises ValueError, TypeError."""
    "".join(values).encode()
    if not isinstance(values, list):
        raise TypeError
    return values


def _read_requests(path: Path) -> tuple[Mapping[str, Any], list[tuple[int, Mapping[str, Any]]]]:
    lines = list(_read_lines(path))
    if not lines or lines[0][1].get("format") != REQUESTS:
        raise DataError(f"{path}: not a file of requests; give the file from `mmgen judge requests`")
    entries = [(number, line) for number, line in lines[1:] if "key" in line]
    keys: dict[tuple[Any, ...], Any] = {}  # a rating is requested once
    for number, line in [lines[0], *entries]:
        names = ("key", "id", "criterion") if line is not lines[0][1] else ("sheet",)
        values = tuple(line.get(name) for name in names)
        if not all(isinstance(value, str) for value in values) or keys.setdefault(values[1:], values[0]) != values[0]:
            raise DataError(
                f"{path}:{number}: the request is damaged; write the file again with `mmgen judge requests`"
            )
    return lines[0][1], entries


def _read_ratings(path: Path, keys: set[str]) -> tuple[dict[str, int], list[str]]:
    """Key -> rating, and the models that gave them; lines with other keys are left out."""
    rated: dict[str, int] = {}
    first: dict[str, int] = {}
    models: dict[str, None] = {}
    for number, line in _read_lines(path):
        key, value = line.get("key"), line.get("rating")
        if not isinstance(key, str) or key not in keys:
            continue
        if type(value) is not int or not LOWEST <= value <= HIGHEST:
            raise DataError(
                f'{path}:{number}: "rating" is {json.dumps(value)[:20]}; ratings are whole numbers from {LOWEST} to '
                f"{HIGHEST}"
            )
        if rated.setdefault(key, value) != value:
            raise DataError(
                f"{path}:{number}: rates what line {first[key]} rates {rated[key]}; delete one of the two lines"
            )
        first.setdefault(key, number)
        if isinstance(line.get("model"), str):
            models[line["model"]] = None
    return rated, list(models)


def _read_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    for number, text in enumerate(_read_text(path).split("\n"), 1):
        if text.strip():
            try:
                line = json.loads(text)
            except (ValueError, RecursionError) as error:
                raise DataError(f"{path}:{number}: invalid line ({json_problem(error)}); write a JSON object") from None
            if not isinstance(line, dict):
                raise DataError(f"{path}:{number}: invalid line; write a JSON object")
            yield number, line


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise DataError(f"{path}: no such file") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeError:
        raise DataError(f"{path}: not a text file in UTF-8") from None
