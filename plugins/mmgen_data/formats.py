"""Reads VQA's questions and JSON lines into entries, with prompts, and counts what was left out. (Tables: `columns`.)

Each reader takes a path. Raises DataError with the line, or the place in the JSON, of the error.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from mmgen.errors import DataError
from mmgen.reading.text import image_id, join_names, json_lines, kind, read_items, read_list, require_keys, tidy


@dataclass
class Entry:
    """The questions and captions of one image (in JSONL: of one line)."""

    id: str
    image: str | None
    questions: list[str] = field(default_factory=list)
    captions: tuple[str, ...] = ()
    more: Mapping[str, Any] = field(default_factory=dict)  # further inputs
    prompts: list[str] = field(default_factory=list)  # one per question; "" for a question without one

    def add(self, question: str, counts: Counter, prompt: str = "") -> None:
        if question:
            self.questions.append(question)
            self.prompts.append(prompt)
        else:
            counts["empty_questions"] += 1


@dataclass
class QuestionFile:
    """The content of a file of questions. `counts`: empty_questions and duplicates (repeated questions), which are
    left out. `unused_columns`: columns of a table that are not read."""

    entries: list[Entry]
    counts: Counter
    licence: str | None = None
    unused_columns: tuple[str, ...] = ()


def read_annotations(path: Path, kind: str) -> dict[str, str]:
    """Question id -> its "answer", "answer_type" or "question_type", of VQA's `*_annotations.json`."""
    key = {"answer": "multiple_choice_answer"}.get(kind, kind)
    values: dict[str, str] = {}

    def take(item: Any) -> None:
        require_keys(item, "question_id", key)
        values[image_id(item["question_id"], "question_id", plain=True)] = tidy(item[key], key)

    read_items(read_list(path, "annotations", "VQA annotations")[1], path, "annotations", take)
    return values


def read_vqa(path: Path, prompts: Mapping[str, str] = MappingProxyType({})) -> QuestionFile:
    """`*_questions.json` of VQA 1.0, VQA 2.0 and OK-VQA; one entry per image. `prompts`: by the question's id."""
    table, questions = read_list(path, "questions", "VQA questions")
    entries: dict[str, Entry] = {}
    seen: dict[str, tuple[str, str]] = {}
    counts: Counter = Counter()

    def take(item: Any) -> None:
        require_keys(item, "image_id", "question")
        key, question = image_id(item["image_id"], "image_id"), tidy(item["question"], "question")
        prompt = prompts.get(str(item.get("question_id")), "")
        if "question_id" in item:
            question_id = image_id(item["question_id"], "question_id", plain=True)
            if question_id in seen:
                if seen[question_id] != (key, question):
                    raise DataError(f"duplicate question_id {question_id}, with other words or another image")
                counts["duplicates"] += 1
                return
            seen[question_id] = key, question
        entries.setdefault(key, Entry(key, key)).add(question, counts, prompt)

    read_items(questions, path, "questions", take)
    licence = table.get("license")
    name = licence.get("name") if isinstance(licence, dict) else None
    return QuestionFile([*entries.values()], counts, name if isinstance(name, str) else None)


def read_jsonl(path: Path, columns: Mapping[str, str] = MappingProxyType({})) -> QuestionFile:
    """One JSON table per line: "id", "image", "caption" or "captions", "questions"; other keys are further inputs.
    The id of a line without one is its number. `columns`: field -> its key, where that has another name."""
    lines: dict[str, int] = {}
    entries: list[Entry] = []
    counts: Counter[str] = Counter()
    for number, item in json_lines(path):
        try:
            entry = _entry_of_line(with_fields(item, columns, tuple(columns)), counts, number, "prompt" in columns)
            if entry.id in lines:
                raise DataError(f"duplicate id '{entry.id}', first on line {lines[entry.id]}")
        except DataError as error:
            raise DataError(f"{path}:{number}: {error}") from None
        lines[entry.id] = number
        entries.append(entry)
    return QuestionFile(entries, counts)


def with_fields(item: Any, columns: Mapping[str, str], required: Collection[str]) -> Any:
    """A JSON object with its keys named as fields. Raises DataError if it lacks the key of a `required` field."""
    if columns and not isinstance(item, dict):
        raise DataError(f"must be a table with {join_names(columns.values())}, not {kind(item)}")
    if required:
        require_keys(item, *(columns[field] for field in required))
    fields = {key: field for field, key in columns.items()}
    return {fields.get(key, key): value for key, value in item.items()} if columns else item


def _entry_of_line(item: Any, counts: Counter, number: int, has_prompts: bool) -> Entry:
    """The entry of a line. `number`: its id if it has none."""
    require_keys(item, "questions")
    more = dict(item)
    entry_id = image_id(more.pop("id", number), "id", plain=True)
    image = more.pop("image", None)
    questions = _tidy_texts(more.pop("questions"), "questions")
    prompts = prompts_for(questions, _tidy_texts(more.pop("prompt", []), "prompt") if has_prompts else [])
    captions = _tidy_texts(more.pop("caption", []), "caption") + _tidy_texts(more.pop("captions", []), "captions")
    entry = Entry(
        entry_id,
        None if image is None else image_id(image, "image"),
        captions=tuple(filter(None, captions)),
        more={
            name: tuple(_tidy_texts(value, name)) if isinstance(value, list) else tidy(value, name)
            for name, value in more.items()
        },
    )
    for question, prompt in zip(questions, prompts, strict=True):
        entry.add(question, counts, prompt)
    return entry


def prompts_for(questions: Sequence[str], prompts: Sequence[str]) -> list[str]:
    """One prompt per question: those of a row, or its only one for all. Raises DataError."""
    if len(prompts) not in (0, 1, len(questions)):
        raise DataError(f"{len(prompts)} prompts for {len(questions)} questions; give one, or one per question")
    return [*prompts] if len(prompts) == len(questions) else [*prompts, ""][:1] * len(questions)


def _tidy_texts(value: Any, name: str) -> list[str]:
    if isinstance(value, list):
        return [tidy(text, f"{name}[{number}]") for number, text in enumerate(value)]
    return [tidy(value, name)]
