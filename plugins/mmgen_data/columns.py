"""Columns of tables with a header, CSV or TSV: which hold what. Rows of one image (or id) make one entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmgen.errors import DataError, did_you_mean
from mmgen.reading.tables import BETWEEN, rows
from mmgen.reading.text import image_id, join_names, tidy

from .formats import Entry, QuestionFile, prompts_for

DEFAULT_NAMES = {  # field of an entry -> default names of its column
    "id": ("id",),
    "image": ("image", "image_id"),
    "caption": ("caption", "captions"),
    "questions": ("questions", "question"),
}


KNOWN = {*DEFAULT_NAMES, "prompt"}  # fields that are not inputs


@dataclass(frozen=True)
class Columns:
    """The columns of the fields.

    names    "id", "image", "caption", "questions", "prompt", or another input -> its column, which must exist
    usual    field -> possible names of its column, which may be missing
    between  the separator of several texts in one cell; "" for one text per cell
    advice   the end of the error message for a missing column
    """

    names: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, Sequence[str]] = field(default_factory=lambda: DEFAULT_NAMES)
    between: str = BETWEEN
    advice: str = 'name it in data.columns, as in columns = { questions = "NAME" }'


VQG_HEADER = ("image_id", "image_url", "questions")
VQG = Columns(
    {"image": VQG_HEADER[0], "questions": VQG_HEADER[2]},
    {"caption": ("captions",)},
    advice=f"VQG's columns are: {', '.join(VQG_HEADER)}",
)


def read_columns(path: Path, columns: Columns) -> QuestionFile:
    """The entries of a table, one per id, or per image without ids, or per row without either. Raises DataError."""
    entries: dict[str, Entry] = {}
    counts: Counter[str] = Counter()
    header: Sequence[str] = ()
    places: Mapping[str, int] = {}
    for line, row in rows(path):
        try:
            if not places:
                header, places = row, columns_of(row, columns)
                continue
            cells = {name: row[place].strip() for name, place in places.items()}
            _join_row(entries, _entry_of_row(cells, columns.between, len(entries) + 1), counts)
        except DataError as error:
            raise DataError(f"{path}:{line}: {error}") from None
    unused = [name for place, name in enumerate(header) if place not in places.values()]
    return QuestionFile([*entries.values()], counts, unused_columns=tuple(unused))


def columns_of(header: Sequence[str], columns: Columns) -> dict[str, int]:
    """Field -> the index of its column in a table's header. Raises DataError."""
    usual = {
        name: next((column for column in known if column in header), "")
        for name, known in columns.usual.items()
        if name not in columns.names
    }
    named = {**columns.names, **{name: column for name, column in usual.items() if column}}
    for name in [*named.values(), *(["questions"] if "questions" in {*columns.usual} - {*named} else [])]:
        if name not in header:
            raise DataError(
                f"no column '{name}'{did_you_mean(name, header)}; the columns are: {join_names(header)}; "
                f"{columns.advice}"
            )
        if header.count(name) > 1:
            raise DataError(f"the column '{name}' occurs {header.count(name)} times; keep one of them")
    return {name: header.index(column) for name, column in named.items()}


def _entry_of_row(cells: Mapping[str, str], between: str, number: int) -> Entry:
    """The entry of a row. `number`: the id of a row without id and image."""
    texts = {name: tuple(_split_texts(cell, name, between)) for name, cell in cells.items()}
    has_id = "id" in cells
    image = image_id(cells["image"], "image_id") if cells.get("image") or ("image" in cells and not has_id) else None
    entry_id = image_id(cells["id"], "id", plain=True) if has_id else image or str(number)
    return Entry(
        entry_id,
        image,
        list(texts["questions"]),
        tuple(filter(None, texts.get("caption", ()))),
        {name: values for name in cells if name not in KNOWN and (values := tuple(filter(None, texts[name])))},
        prompts_for(texts["questions"], texts.get("prompt", ())),
    )


def _split_texts(cell: str, name: str, between: str) -> Iterator[str]:
    for text in cell.split(between) if between else [cell]:
        yield tidy(text, name)


def _join_row(entries: dict[str, Entry], row: Entry, counts: Counter[str]) -> None:
    """Add a row to the entry with its id. Raises DataError for a row about another image."""
    entry = entries.get(row.id)
    questions, row.questions = [*zip(row.questions, row.prompts, strict=True)], []
    row.prompts = []
    if entry is None:
        entries[row.id] = entry = row
    else:
        if entry.image != row.image:
            raise DataError(
                f"the id '{row.id}' has the image {row.image} here, but {entry.image} in an earlier row; use "
                "one image per id"
            )
        known = {*zip(entry.questions, entry.prompts, strict=True)}
        repeated = [question for question in questions if question in known]
        counts["duplicates"] += len(repeated)
        questions = [question for question in questions if question not in repeated]
        entry.captions = tuple(dict.fromkeys((*entry.captions, *row.captions)))
        names = dict.fromkeys((*entry.more, *row.more))
        entry.more = {
            name: tuple(dict.fromkeys((*entry.more.get(name, ()), *row.more.get(name, ())))) for name in names
        }
    for question, prompt in questions:
        entry.add(question, counts, prompt)
