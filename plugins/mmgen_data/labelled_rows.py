"""The data set of tables and JSON lines whose rows have labels: answers, truths, choices or boxes."""

from __future__ import annotations

import logging
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from mmgen_vision.answers import PEOPLE, most_common, normalise, spread_evenly, weights
from mmgen_vision.boxes import Box
from mmgen_vision.find_files import Finder
from mmgen_vision.published import EmptySplit, PublishedFiles, Split, counted
from mmgen_vision.truths import LABELS

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.tables import BETWEEN, rows
from mmgen.reading.text import image_id, join_names, json_lines, kind, tidy

from . import Csv, Table
from .columns import Columns, columns_of
from .formats import with_fields

MOST_DIGITS = 9  # of the number of a choice
USUAL = {  # field -> default names of its column
    "id": ("id",),
    "image": ("image", "image_id"),
    "caption": ("caption", "captions"),
    "question": ("question", "questions"),
}
TRUTHS = {"true": True, "false": False, "yes": True, "no": False, "1": True, "0": False}
LEFT_OUT = {"without_label": "row{s} without a label", "without_picture": "example{s} without a picture"}
BETWEEN_NUMBERS = re.compile(r"[\s,;]+")

log = logging.getLogger("mmgen")


@dataclass
class Row:
    """What one row, or several with the same id, say about an example. `labels`: as in `LabelledRows`, but "answers" is
    a list of normalised answers, one per person."""

    inputs: dict[str, Any]
    labels: dict[str, Any]
    facts: dict[str, str]
    boxes: tuple[Box, ...] = ()

    def join(self, row: Row) -> None:
        """Add another row about the same example. Raises DataError if they disagree."""
        if row.inputs != self.inputs:
            raise DataError("an earlier row with the same id has other inputs; give every example a different id")
        answers = [*self.labels.get("answers", ()), *row.labels.get("answers", ())]
        labels = {**self.labels, **row.labels} | ({"answers": answers} if answers else {})
        if any(labels[name] != label for name, label in self.labels.items() if name != "answers"):
            raise DataError("an earlier row with the same id has another label; give every example a different id")
        self.labels = labels


class LabelledRows(PublishedFiles):
    """Examples of a `Csv` or `Jsonl` config with labels among its columns.

    id       the split and the row's id, or without ids its number: "train-17"
    inputs   "image": the image's key; "question", "caption" and other columns; "answer": the most common answer
    labels   those in `columns`; "answers": {answer: min(1, 0.3 per person of ten who gave it)}
    targets  the answers of ten people in the split to evaluate; in other splits the most common answer
    facts    image; the columns in `facts`; people: how many people answered

    Fewer than ten answers are repeated to ten, evenly: a single answer stands for ten people who agree. Answers are
    normalised as VQA's official evaluation does.
    """

    advice = "put the files there, or name other files in data.files"
    config: Table

    def __init__(self, config: Table) -> None:
        self.name, self.licence = config.published.name, config.published.licence
        self.source = config.published.where("")
        super().__init__(config)
        self._rows: dict[str, dict[str, Row]] = {}
        self._parse_boxes: dict[str, Sequence[Box]] = {}

    def find(self, finder: Finder, split: str) -> Path:
        names = [self.config.files[split]] if split in self.config.files else self.config.published.questions[split]
        return finder.file(names, "")

    def boxes(self, key: str) -> tuple[Sequence[Box], None] | None:
        return (self._parse_boxes[key], None) if key in self._parse_boxes else None

    def vocabularies(self) -> Mapping[str, tuple[str, ...]]:
        known = {"truth": LABELS} if "truth" in self.config.labels else {}
        return known | ({"answers": self._vocabulary} if "answers" in self.config.labels else {})

    def describe(self) -> dict[str, Any]:
        """As for all published data sets; also the size of the answer vocabulary."""
        vocabulary = {"answers": len(self._vocabulary)} if "answers" in self.config.labels else {}
        return {**super().describe(), **vocabulary}

    def load(self, name: str) -> Split:
        complete = {
            row_id: row for row_id, row in self._read_rows(name).items() if {*self.config.labels} <= row.labels.keys()
        }
        counts = Counter(without_label=len(self._read_rows(name)) - len(complete), without_picture=0)
        examples = [self._example_of_row(name, row_id, row) for row_id, row in complete.items()]
        shown = dict.fromkeys(key for example in examples for key in example.shown("image"))
        absent = [key for key in shown if self.config.images is not None and key not in self.pictures_at]
        lacking = {"without_picture": absent} if absent else {}
        if absent and self.config.missing == "error":
            raise DataError(
                f"{self.files[name]}: {len(absent)} images without a picture (first: {absent[0]}); set missing = "
                '"drop" to leave their examples out, or "keep" to keep them'
            )
        if absent and self.config.missing == "drop":
            remaining = [example for example in examples if not {*absent} & {*example.shown("image")}]
            counts["without_picture"] = len(examples) - len(remaining)
            examples = remaining
        left_out = counted(counts, LEFT_OUT)
        if not examples:
            what = left_out or "the file is empty"
            raise EmptySplit(f"{self.files[name]}: no examples remain for the split '{name}': {what}", lacking)
        if left_out:
            log.warning("%s %s: left out %s", self.name, name, left_out)
        return Split(examples, counts, lacking)

    def _example_of_row(self, split: str, row_id: str, row: Row) -> Example:
        """The example of a row. The answers of people become weights of the known answers, the targets, and the input
        "answer" (the most common one)."""
        inputs, labels, targets = {**row.inputs}, {**row.labels}, tuple[str, ...]()
        facts = {**({"image": inputs["image"]} if "image" in inputs else {}), **row.facts}
        if "answers" in labels:
            answers = spread_evenly(labels["answers"])
            (common, _), *_ = Counter(answers).most_common()
            facts["people"] = str(len(labels["answers"]))
            inputs["answer"] = common
            targets = answers if split == self.config.test_split else (common,)
            labels["answers"] = {
                answer: weight for answer, weight in weights(answers).items() if answer in self._known_answers
            }
        return Example(f"{split}-{row_id}", inputs, targets, facts, labels)

    @cached_property
    def _vocabulary(self) -> tuple[str, ...]:
        split = self.config.train_split
        answers = [
            Counter(row.labels["answers"]).most_common(1)[0][0]
            for row in self._read_rows(split).values()
            if "answers" in row.labels
        ]
        return most_common(answers, self.config.num_answers, self.config.min_count, self.files[split])

    @cached_property
    def _known_answers(self) -> frozenset[str]:
        return frozenset(self._vocabulary)

    def _read_rows(self, split: str) -> dict[str, Row]:
        """The rows of a split by their ids. Rows of one question, with the answers of several people, are joined.
        Raises DataError with the line."""
        if split not in self._rows:
            path, by_id = self.files[split], dict[str, Row]()
            ids: dict[str, str] = {}  # without ids: the inputs of a row -> the id of the row that has them
            for line, values in self._rows_of_table(path) if isinstance(self.config, Csv) else self._rows_of_json(path):
                try:
                    row_id, row = self._parse_row(values)
                    number = str(len(by_id) + 1)
                    if not row_id:  # the answers of several people have the same inputs
                        row_id = ids.setdefault(repr(row.inputs), number) if "answers" in row.labels else number
                    if row_id in by_id:
                        by_id[row_id].join(row)
                    else:
                        by_id[row_id] = row
                    if len(by_id[row_id].labels.get("answers", ())) > PEOPLE:
                        raise DataError(f"a question has over {PEOPLE} answers; give the answers of {PEOPLE} people")
                    self._note_boxes(row)
                except DataError as error:
                    raise DataError(f"{path}:{line}: {error}") from None
            self._rows[split] = by_id
        return self._rows[split]

    def _note_boxes(self, row: Row) -> None:
        if row.boxes and (key := row.inputs.get("image")) and self._parse_boxes.setdefault(key, row.boxes) != row.boxes:
            raise DataError(f"the image {key} has other boxes than in an earlier row; give every row the same boxes")

    def _rows_of_table(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """The rows of a table: field -> text, or a list of texts."""
        config = self.config
        assert isinstance(config, Csv)
        names = {**config.columns, **{name: name for name in config.facts}}
        places: Mapping[str, int] = {}
        for line, cells in rows(path):
            if not places:
                advice = 'name it in data.columns, as in columns = { answers = "NAME" }'
                try:
                    places = columns_of(cells, Columns(names, USUAL, advice=advice))
                except DataError as error:
                    raise DataError(f"{path}:{line}: {error}") from None
                if unused := [name for place, name in enumerate(cells) if place not in places.values()]:
                    log.info("%s: unused columns: %s", path, join_names(unused))
                continue
            yield (
                line,
                {field: _parse_cell(field, cells[place].strip(), config.separator) for field, place in places.items()},
            )

    def _rows_of_json(self, path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
        """The JSON objects of a file, with their keys named as fields."""
        columns = self.config.columns
        for line, item in json_lines(path):
            try:
                yield line, with_fields(item, columns, [field for field in columns if field not in PARSERS])
            except DataError as error:
                raise DataError(f"{path}:{line}: {error}") from None

    def _parse_row(self, values: Mapping[str, Any]) -> tuple[str, Row]:
        """A row's id, or "", and its content. Raises DataError."""
        values = {field: value for field, value in values.items() if value not in ("", None, [], ())}
        row_id = image_id(values["id"], "id", plain=True) if "id" in values else ""
        parsed = {field: parse(values[field]) for field, parse in PARSERS.items() if field in values}
        labels = {name: parsed[name] for name in self.config.labels if name in parsed}
        if "choice" in labels and "choices" in labels:
            labels["choice"] = _place_of(labels["choice"], labels["choices"])
        facts = {name: _parse_fact(values[name], name) for name in self.config.facts if name in values}
        inputs = {
            field: image_id(value, "image") if field == "image" else _parse_input(value, field)
            for field, value in values.items()
            if field not in {"id", *PARSERS, *self.config.facts}
        }
        return row_id, Row(inputs, labels, facts, parsed.get("boxes", ()))


def _parse_cell(field: str, text: str, between: str) -> Any:
    """A cell of a table as JSON would have it: lists for answers, choices, boxes and captions, else the text."""
    if field in ("answers", "choices", "boxes", "caption"):
        return [part.strip() for part in (text.split(between) if between else [text]) if part.strip()]
    return text


def _parse_input(value: Any, name: str) -> Any:
    """The text of an input, or a tuple of alternatives."""
    if not isinstance(value, list):
        return tidy(value, name)
    return tuple(tidy(text, f"{name}[{number}]") for number, text in enumerate(value))


def _parse_fact(value: Any, name: str) -> str:
    return str(value) if isinstance(value, int | float) else tidy(value, name)


def _parse_texts(value: Any, name: str) -> list[str]:
    texts = [
        _parse_input(text, f"{name}[{number}]")
        for number, text in enumerate(value if isinstance(value, list) else [value])
    ]
    if not all(isinstance(text, str) and text for text in texts):
        raise DataError(f"{name}: an empty text; leave it out")
    return texts


def _parse_truth(value: Any) -> bool:
    text = str(value).strip().lower()
    if isinstance(value, list | dict) or text not in TRUTHS:
        raise DataError(f"truth must be true or false, not {value!r:.60}")
    return TRUTHS[text]


def _parse_choices(value: Any) -> tuple[str, ...]:
    texts = _parse_texts(value, "choices")
    if len(texts) < 2:
        raise DataError(f"choices must be two texts or more, such as red{BETWEEN}blue; got {len(texts)}")
    return tuple(texts)


def _parse_choice(value: Any) -> int | str:
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise DataError(f"choice must be a number, or the text of the right choice, not {kind(value)}")
    return value if isinstance(value, int) else tidy(value, "choice")


def _place_of(choice: int | str, choices: Sequence[str]) -> int:
    """The number of the right choice, from 0."""
    if isinstance(choice, str) and choice in choices:
        return choices.index(choice)
    is_number = isinstance(choice, int) or (choice.isascii() and choice.isdigit() and len(choice) <= MOST_DIGITS)
    number = int(choice) if is_number else -1
    if not 0 <= number < len(choices):
        raise DataError(
            f"choice is {choice!r:.60}; give one of the choices, or its number from 0 to {len(choices) - 1}"
        )
    return number


def _parse_box(value: Any) -> Box:
    parts = BETWEEN_NUMBERS.split(value.strip()) if isinstance(value, str) else value
    try:
        x0, y0, x1, y1 = map(float, parts)
    except (TypeError, ValueError):
        raise DataError(f"a box must be four numbers, x0 y0 x1 y1, not {value!r:.60}") from None
    if not (0 <= x0 < x1 <= 1 and 0 <= y0 < y1 <= 1):
        raise DataError(
            f"a box must be x0 < x1 and y0 < y1 from 0 to 1, relative to the picture's size, not {value!r:.60}"
        )
    return x0, y0, x1, y1


def _parse_boxes(value: Any) -> tuple[Box, ...]:
    if not isinstance(value, list):
        raise DataError(f"boxes must be a list of boxes, not {kind(value)}")
    return tuple(map(_parse_box, value))


PARSERS: dict[str, Callable[[Any], Any]] = {  # field -> the value of its label
    "answers": lambda value: [normalise(answer) or answer.lower() for answer in _parse_texts(value, "answers")],
    "truth": _parse_truth,
    "choices": _parse_choices,
    "choice": _parse_choice,
    "box": _parse_box,
    "boxes": _parse_boxes,
}
