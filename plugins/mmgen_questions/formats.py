"""VQA's questions and JSONL, read into plain entries and counts of what was odd. (Tables: `columns`.)

Each reader takes a path and raises DataError, with the line or the place in the JSON, for what cannot be used.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import image_id, json_lines, read_items, read_list, require_keys, tidy


@dataclass
class Entry:
    """What a file of questions says of one image (in JSONL: what a line says)."""

    id: str
    image: str | None
    questions: list[str] = field(default_factory=list)
    captions: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)  # inputs of other names

    def add(self, question: str, counts: Counter) -> None:
        if question:
            self.questions.append(question)
        else:
            counts["empty_questions"] += 1


@dataclass
class Read:
    """A file of questions. `counts`: empty_questions and duplicates (the same question again, which is left out).
    `passed`: columns of a table that nobody reads."""

    entries: list[Entry]
    counts: Counter
    licence: str | None = None
    passed: tuple[str, ...] = ()


def read_vqa(path: Path) -> Read:
    """`*_questions.json` of VQA 1.0, VQA 2.0 and OK-VQA; the questions of an image come together."""
    table, questions = read_list(path, "questions", "VQA questions")
    entries: dict[str, Entry] = {}
    seen: dict[str, tuple[str, str]] = {}
    counts: Counter = Counter()

    def take(item: Any) -> None:
        require_keys(item, "image_id", "question")
        key, question = image_id(item["image_id"], "image_id"), tidy(item["question"], "question")
        if "question_id" in item:
            own = image_id(item["question_id"], "question_id", plain=True)
            if own in seen:
                if seen[own] != (key, question):
                    raise DataError(f"question_id {own} came before, with other words or another image")
                counts["duplicates"] += 1
                return
            seen[own] = key, question
        entries.setdefault(key, Entry(key, key)).add(question, counts)

    read_items(questions, path, "questions", take)
    licence = table.get("license")
    name = licence.get("name") if isinstance(licence, dict) else None
    return Read([*entries.values()], counts, name if isinstance(name, str) else None)


def read_jsonl(path: Path) -> Read:
    """{"id", "image", "caption" or "captions", "questions"} a line; other keys are inputs under their own names."""
    lines: dict[str, int] = {}
    entries: list[Entry] = []
    counts: Counter[str] = Counter()
    for number, item in json_lines(path):
        try:
            entry = _entry(item, counts)
            if entry.id in lines:
                raise DataError(f"the id '{entry.id}' is line {lines[entry.id]}'s already")
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
        lines[entry.id] = number
        entries.append(entry)
    return Read(entries, counts)


def _entry(item: Any, counts: Counter) -> Entry:
    require_keys(item, "id", "questions")
    more = dict(item)
    own = image_id(more.pop("id"), "id", plain=True)
    image = more.pop("image", None)
    questions = _texts(more.pop("questions"), "questions")
    captions = _texts(more.pop("caption", []), "caption") + _texts(more.pop("captions", []), "captions")
    entry = Entry(
        own,
        None if image is None else image_id(image, "image"),
        captions=tuple(filter(None, captions)),
        more={
            name: tuple(_texts(value, name)) if isinstance(value, list) else tidy(value, name)
            for name, value in more.items()
        },
    )
    for question in questions:
        entry.add(question, counts)
    return entry


def _texts(value: Any, name: str) -> list[str]:
    if isinstance(value, list):
        return [tidy(text, f"{name}[{number}]") for number, text in enumerate(value)]
    return [tidy(value, name)]
