"""Programs as judges: a sheet as requests, and ratings as a filled sheet. docs/guides/judging.md shows both files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

from mmgen.errors import DataError
from mmgen.files import write_json, write_text
from mmgen.reading.rows import raw_rows, validated

from .sheet import Filled, Item, Rating, Request, Sheet

PROMPT = """\
You rate a question about a picture, on one criterion alone.

{meaning}.
{ask} Rate from 1 ({lowest}) to 5 ({highest}).
{context}
Question: {question}

Reply with one whole number from 1 to 5, and nothing else."""


def write_requests(sheet: Sheet, out: Path) -> int:
    """Write a line for each picture and each rating that the sheet asks for; the number of ratings."""
    pictures = [{"picture": _hash_of(item.shot[0]), "url": item.shot[0]} for item in sheet.items if item.shot]
    ratings = [request.model_dump() for request in requests_of(sheet)]
    write_text(out, "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in (*pictures, *ratings)))
    return len(ratings)


def requests_of(sheet: Sheet) -> Iterator[Request]:
    """The ratings that a sheet asks for."""
    for item in sheet.items:
        for part in sheet.rounds:
            picture = _hash_of(item.shot[0]) if item.shot and "picture" in part.shows else None
            for question in item.questions:
                for name in part.criteria:
                    prompt = _prompt(sheet.words[name], question.text, item, part.shows)
                    key = _hash_of(f"{prompt}\n{picture or ''}")
                    yield Request(key=key, id=question.id, criterion=name, prompt=prompt, picture=picture)


def fill(sheet: Sheet, ratings: Path, judge: str, out: Path) -> tuple[str, int]:
    """Write the filled sheet of a program. `judge`: its name; by default the model that the ratings name. Returns the
    name and how many ratings are missing. Raises DataError."""
    rows = [row for _, row in validated(raw_rows(ratings), Rating, "key")]
    rated = {row.key: row.rating for row in rows}
    models = {row.model for row in rows if row.model}
    if not judge and len(models) != 1:
        raise DataError(f"{ratings}: names {len(models)} models; give ratings by one model, and its name with --judge")
    filled: dict[str, dict[str, int]] = {}
    missing = 0
    for request in requests_of(sheet):
        if request.key in rated:
            filled.setdefault(request.id, {})[request.criterion] = rated[request.key]
        else:
            missing += 1
    if not filled:
        raise DataError(f"{ratings}: rates nothing of this sheet; give the ratings of its requests")
    name = judge or models.pop()
    write_json(out, Filled(sheet=sheet.sheet, judge=name, ratings=filled).model_dump())
    return name, missing


def _prompt(words: list[str], question: str, item: Item, shows: list[str]) -> str:
    ask, meaning, lowest, highest = words
    texts = {"caption": item.caption, "answer": item.answer}
    context = "".join(f"\n{name.capitalize()}: {text}" for name, text in texts.items() if name in shows)
    question = question or "(nothing was written)"
    return PROMPT.format(meaning=meaning, ask=ask, lowest=lowest, highest=highest, context=context, question=question)


def _hash_of(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]
