"""Tables with a header, CSV or TSV: which column is what, and rows of one image (or id) as one entry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from mmgen.errors import DataError, did_you_mean
from mmgen.reading.tables import BETWEEN, rows
from mmgen.reading.text import image_id, join_names, tidy

from .formats import Entry, Read

USUAL = {  # what an entry has -> names that its column may have where nobody says which it is
    "id": ("id",),
    "image": ("image", "image_id"),
    "caption": ("caption", "captions"),
    "questions": ("questions", "question"),
}


@dataclass(frozen=True)
class Columns:
    """Which column is what.

    names    "id", "image", "caption", "questions", or an input of another name -> its column, which must be there
    usual    the same for columns that are read where they are there
    between  what stands between two texts of one cell; "" where a cell is one text
    advice   how a column that is missing is named, for errors
    """

    names: Mapping[str, str] = field(default_factory=dict)
    usual: Mapping[str, Sequence[str]] = field(default_factory=lambda: USUAL)
    between: str = BETWEEN
    advice: str = 'name it in data.columns, as in columns = { questions = "NAME" }'


VQG = Columns(
    {"image": "image_id", "questions": "questions"},
    {"caption": ("captions",)},
    advice="VQG's are: image_id, image_url, questions",
)


def read_columns(path: Path, columns: Columns) -> Read:
    """The entries of a table: of every id, or else of every image, or else of every row. Raises DataError."""
    entries: dict[str, Entry] = {}
    counts: Counter[str] = Counter()
    header: Sequence[str] = ()
    places: Mapping[str, int] = {}
    for line, row in rows(path):
        try:
            if not places:
                header, places = row, _places(row, columns)
                continue
            cells = {name: row[place].strip() for name, place in places.items()}
            _join(entries, _entry(cells, columns.between, len(entries) + 1), counts)
        except DataError as error:
            raise DataError(f"{path}:{line}: {error}") from None
    passed = [name for place, name in enumerate(header) if place not in places.values()]
    return Read([*entries.values()], counts, passed=tuple(passed))


def _places(header: Sequence[str], columns: Columns) -> dict[str, int]:
    """What is read -> the number of its column. Raises DataError."""
    usual = {
        name: next((each for each in known if each in header), "")
        for name, known in columns.usual.items()
        if name not in columns.names
    }
    named = {**columns.names, **{name: column for name, column in usual.items() if column}}
    for name in [*named.values(), *([] if "questions" in named else ["questions"])]:
        if name not in header:
            raise DataError(
                f"no column '{name}'{did_you_mean(name, header)}; the columns are: {join_names(header)}; "
                f"{columns.advice}"
            )
        if header.count(name) > 1:
            raise DataError(f"the column '{name}' is there {header.count(name)} times; keep one of them")
    return {name: header.index(column) for name, column in named.items()}


def _entry(cells: Mapping[str, str], between: str, number: int) -> Entry:
    """The entry of a row. `number`: its id where it has neither an id nor an image."""
    texts = {name: tuple(_texts(cell, name, between)) for name, cell in cells.items()}
    named = "id" in cells
    image = image_id(cells["image"], "image_id") if cells.get("image") or ("image" in cells and not named) else None
    own = image_id(cells["id"], "id", plain=True) if named else image or str(number)
    return Entry(
        own,
        image,
        list(texts["questions"]),
        tuple(filter(None, texts.get("caption", ()))),
        {name: some for name in cells if name not in USUAL and (some := tuple(filter(None, texts[name])))},
    )


def _texts(cell: str, name: str, between: str) -> Iterator[str]:
    for text in cell.split(between) if between else [cell]:
        yield tidy(text, name)


def _join(entries: dict[str, Entry], row: Entry, counts: Counter[str]) -> None:
    """Add a row to what is there under its id. Raises DataError where it is of another image."""
    there = entries.get(row.id)
    questions, row.questions = row.questions, []
    if there is None:
        entries[row.id] = there = row
    else:
        if there.image != row.image:
            raise DataError(f"the id '{row.id}' came before with the image {there.image}, and here it has {row.image}")
        repeated = [question for question in questions if question in there.questions]
        counts["duplicates"] += len(repeated)
        questions = [question for question in questions if question not in repeated]
        there.captions = tuple(dict.fromkeys((*there.captions, *row.captions)))
        names = dict.fromkeys((*there.more, *row.more))
        there.more = {
            name: tuple(dict.fromkeys((*there.more.get(name, ()), *row.more.get(name, ())))) for name in names
        }
    for question in questions:
        there.add(question, counts)
