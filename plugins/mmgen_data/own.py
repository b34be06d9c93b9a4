"""Your own data in tables and JSON lines: questions to write, or examples with labels, by the names of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from mmgen_vision.answers import PEOPLE, most_common, spread_evenly, weights
from mmgen_vision.configs import About
from mmgen_vision.truths import LABELS as TRUTHS
from pydantic import Field

from mmgen.errors import DataError
from mmgen.examples import Example
from mmgen.reading.text import is_table

from .questions import Entry, Questions
from .tables import TableRow, read_table

if TYPE_CHECKING:
    from mmgen_vision.published import Files, Finder, PublishedData

LABELS = ("answers", "truth", "choices", "choice", "box")
ENDINGS = ("jsonl", "csv", "tsv")


@dataclass
class LabelledRow:
    """What one row, or several with the answers of several people, say about an example."""

    inputs: Mapping[str, Any]
    facts: Mapping[str, str]
    labels: dict[str, Any]
    answers: list[str] = field(default_factory=list)

    def join(self, row: LabelledRow, place: str) -> None:
        """Adds the answers of a row about the same example. Raises DataError if they disagree about anything else."""
        if (row.inputs, row.labels) != (self.inputs, self.labels):
            raise DataError(
                f"{place}: an earlier row with the same id has other inputs or labels; give every example its own id"
            )
        self.answers += row.answers
        if len(self.answers) > PEOPLE:
            raise DataError(f"{place}: a question has over {PEOPLE} answers; give the answers of {PEOPLE} people")


class Table(Questions):
    """Your own data, one file per split: a table with a header (.csv, .tsv; cells between commas, semicolons or tabs),
    or JSON lines, {"id": ..., "image": ..., "caption": ..., "questions": [...]} (.jsonl).

    Rows of one id (in tables without ids: of one image) make one example; a line of JSON without an id is called by its
    number. Columns named id, image, caption and questions are recognised, and `columns` names others; of tables the
    rest is ignored, in JSON further keys are inputs. If `columns` names a label (answers, truth, choices, choice, box),
    a row is an example with this label, and its question an input; rows of one id, or without ids with the same inputs,
    are the answers of several people.
    """

    type: Literal["table"] = "table"
    about = About("table", "your own", "your own files")

    columns: dict[str, str] = Field(
        {},
        description='"id", "image", "caption", "questions" or another input -> its column or key; "prompt": what the '
        'questions of a row are to fit, such as a level; a label: "answers" (one, or one per person), "truth", '
        '"choices" and "choice" (the right one, or its number from 0), "box" (x0 y0 x1 y1, from 0 to 1); "boxes": the '
        "picture's regions",
    )
    separator: str = Field("---", description='the separator of several texts in one cell; "" for one text per cell')
    targets: Literal["questions", "captions"] = Field(
        "questions", description='the texts to generate; "captions" trains captioning'
    )
    facts: tuple[str, ...] = Field(
        (), description="with labels: columns that are kept as facts of the examples, such as a level or a topic"
    )
    num_answers: int = Field(
        3129, ge=1, description="with answers: size of the answer vocabulary, the most common answers of `train_split`"
    )
    min_count: int = Field(1, ge=1, description="with answers: at least this many questions must have an answer")

    @property
    def labels(self) -> tuple[str, ...]:  # type: ignore[override]
        return tuple(name for name in (*LABELS, "prompt") if name in self.columns)

    @property
    def has_prompts(self) -> bool:
        return "prompt" in self.columns

    @property
    def has_labels(self) -> bool:
        """Whether its rows have labels, so that questions are inputs."""
        return any(label in self.columns for label in LABELS)

    def model_post_init(self, context: Any) -> None:
        super().model_post_init(context)
        if self.has_prompts and (self.has_labels or self.writes_captions):
            conflict = f"label '{self.labels[0]}'" if self.has_labels else 'targets = "captions"'
            raise ValueError(f"columns: only questions to generate have a prompt; remove it, or the {conflict}")
        if "choice" in self.columns and "choices" not in self.columns:
            raise ValueError('columns: "choice" needs a column "choices" with the texts to choose from')
        if self.facts and not self.has_labels:
            raise ValueError(
                f"facts: only rows with a label have facts; a label in columns is one of {', '.join(LABELS)}"
            )
        if taken := [name for name in self.facts if name in (*self.columns, *self.columns.values())]:
            raise ValueError(f"facts: '{taken[0]}' is also in columns; name it in one of them")

    def find(self, finder: Finder, split: str) -> Files:
        where = 'a header like image,caption,questions, or lines like {"image": "1.jpg", "questions": ["...?"]}'
        names = [[name] for name in self.named_files(split)] or [[Path(f"{split}.{end}") for end in ENDINGS]]
        return {
            "rows": [finder.file(*alternatives, where=where) for alternatives in names],
            "captions": self.find_captions(finder, None),
        }

    def entries(self, data: PublishedData, split: str) -> Iterable[tuple[str, str, Entry]]:
        for number, (place, row, by_image) in enumerate(self._rows(data, split), 1):
            name = row.id or (row.image if by_image else None) or str(number)
            yield place, name, Entry(row.image, row.prompted, row.captions, row.inputs)

    def _rows(self, data: PublishedData, split: str) -> Iterator[tuple[str, TableRow, bool]]:
        """The rows of a split with their places, and whether they are those of a table."""
        columns = {{"question": "questions"}.get(name, name): key for name, key in self.columns.items()}
        required = [name for name in columns if name not in (*LABELS, "boxes")]
        columns |= {name: name for name in self.facts}
        for path in data.files[split]["rows"]:
            needed = required if self.has_labels else [*required, "questions"]
            for place, row in read_table(path, columns, needed, self.separator):
                yield place, row, is_table(path)

    def read(self, data: PublishedData, split: str) -> Iterator[Example | str]:
        """With labels: examples `SPLIT-ID`, or without ids `SPLIT-NUMBER`.

        inputs   "image": the image's key; "question", "caption" and other columns; "answer": the most common answer
        labels   those in `columns`; "answers": {answer: min(1, 0.3 per person of ten who gave it)}
        targets  the answers of ten people in the split to evaluate; in other splits the most common answer
        facts    image; the columns in `facts`; people: how many people answered

        Fewer than ten answers are repeated to ten, evenly: a single answer stands for ten people who agree. Answers are
        normalised as VQA's official evaluation does.
        """
        if not self.has_labels:
            yield from super().read(data, split)
            return
        for name, row in self._labelled(data, split).items():
            if {*self.labels} - {*row.labels} - ({"answers"} if row.answers else set()):
                yield "row{s} without a label"
                continue
            inputs, labels, targets = {**row.inputs}, {**row.labels}, tuple[str, ...]()
            facts = {**row.facts, **({"image": inputs["image"]} if "image" in inputs else {})}
            if row.answers:
                answers, known = spread_evenly(row.answers), {*self._answers(data)}
                inputs["answer"] = Counter(answers).most_common(1)[0][0]
                facts["people"] = str(len(row.answers))
                targets = answers if split == self.test_split else (inputs["answer"],)
                labels["answers"] = {text: weight for text, weight in weights(answers).items() if text in known}
            yield Example(f"{split}-{name}", inputs, targets, facts, labels)

    def lacks(self, data: PublishedData, split: str, example: Example) -> str:
        return "" if self.has_labels else super().lacks(data, split, example)

    def _labelled(self, data: PublishedData, split: str) -> Mapping[str, LabelledRow]:
        """The rows of a split by their ids; rows with the answers of several people are joined."""
        return data.once(f"rows {split}", lambda: self._join_rows(data, split))

    def _join_rows(self, data: PublishedData, split: str) -> Mapping[str, LabelledRow]:
        by_id: dict[str, LabelledRow] = {}
        ids: dict[str, str] = {}  # without ids: the inputs of a row -> the id of the row that has them
        for place, row, _ in self._rows(data, split):
            labelled, number = self._labelled_row(row), str(len(by_id) + 1)
            same = ids.setdefault(repr(labelled.inputs), number) if labelled.answers else number
            if (name := row.id or same) in by_id:
                by_id[name].join(labelled, place)
            else:
                by_id[name] = labelled
            boxes = data.once(f"boxes {row.image}", row.boxes.copy) if row.boxes else []
            if boxes != row.boxes:
                raise DataError(f"{place}: the image {row.image} has other boxes than in an earlier row")
        return by_id

    def _labelled_row(self, row: TableRow) -> LabelledRow:
        texts = {"question": row.questions, "caption": row.captions, **row.inputs}
        inputs = {name: _alone(texts[name]) for name in texts if texts[name] and name not in self.facts}
        facts = {name: ", ".join(row.inputs[name]) for name in self.facts if name in row.inputs}
        values = {"truth": row.truth, "choices": tuple(row.choices) or None, "choice": row.right, "box": row.box}
        labels = {name: value for name, value in values.items() if value is not None and name in self.labels}
        return LabelledRow({"image": row.image, **inputs} if row.image else inputs, facts, labels, [*row.answers])

    def _answers(self, data: PublishedData) -> tuple[str, ...]:
        """The answer vocabulary."""

        def count() -> tuple[str, ...]:
            split = self.train_split
            rows = [row for row in self._labelled(data, split).values() if row.answers]
            common = (Counter(row.answers).most_common(1)[0][0] for row in rows)
            return most_common(common, self.num_answers, self.min_count, data.main_file(split))

        return data.once("vocabulary", count)

    def boxes(self, data: PublishedData, key: str) -> tuple[Sequence[Any], None] | None:
        boxes = data.once(f"boxes {key}", list[Any])
        return (boxes, None) if boxes else None

    def vocabularies(self, data: PublishedData) -> Mapping[str, tuple[str, ...]]:
        known = {"truth": TRUTHS} if "truth" in self.labels else {}
        return known | ({"answers": self._answers(data)} if "answers" in self.labels else {})

    def described(self, data: PublishedData) -> Mapping[str, Any]:
        return {"answers": len(self._answers(data))} if "answers" in self.labels else {}


def _alone(texts: Sequence[str]) -> str | tuple[str, ...]:
    """A single text, or several as alternatives."""
    return texts[0] if len(texts) == 1 else tuple(texts)
