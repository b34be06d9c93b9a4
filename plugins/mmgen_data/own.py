"""Your own data in tables and JSON lines: questions to write, or examples with labels, by the names of columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

from mmgen_vision.answers import most_common, spread_evenly, weights
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


class Table(Questions):
    """Your own data, one file per split: a table with a header (.csv, .tsv; cells between commas, semicolons or tabs),
    or JSON lines, {"id": ..., "image": ..., "caption": ..., "questions": [...]} (.jsonl). Other texts to generate, such
    as captions, are "questions" in `columns`.

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
    facts: tuple[str, ...] = Field(
        (), description="with labels: columns that are kept as facts of the examples, such as a level or a topic"
    )
    num_answers: int = Field(
        3129, ge=1, description="with answers: size of the answer vocabulary, the most common answers of `train_split`"
    )

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
        if self.has_prompts and self.has_labels:
            raise ValueError(
                f"columns: only questions to generate have a prompt; remove it, or the label '{self.labels[0]}'"
            )

    def find(self, finder: Finder, split: str) -> Files:
        where = 'a header like image,caption,questions, or lines like {"image": "1.jpg", "questions": ["...?"]}'
        rows = finder.files(split, *(f"{split}.{ending}" for ending in ("jsonl", "csv", "tsv")), where=where)
        return {"rows": rows, "captions": self.find_captions(finder)}

    def entries(self, data: PublishedData, split: str) -> Iterable[tuple[str, str, Entry]]:
        by_image = is_table(data.main_file(split))
        for number, (place, row) in enumerate(self._rows(data, split), 1):
            name = row.id or (row.image if by_image else None) or str(number)
            yield place, name, Entry(row.image, row.prompted, row.captions, row.inputs)

    def _rows(self, data: PublishedData, split: str) -> Iterator[tuple[str, TableRow]]:
        """The rows of a split with their places."""
        columns = {{"question": "questions"}.get(name, name): key for name, key in self.columns.items()}
        required = [name for name in columns if name not in (*LABELS, "boxes")]
        columns |= {name: name for name in self.facts}
        for path in data.files[split]["rows"]:
            needed = required if self.has_labels else [*required, "questions"]
            yield from read_table(path, columns, needed, self.separator)

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
        for name, rows in self._labelled(data, split).items():
            row = rows[0]
            values = {"truth": row.truth, "choices": tuple(row.choices) or None, "choice": row.choice, "box": row.box}
            labels = {name: value for name, value in values.items() if value is not None and name in self.labels}
            if {*self.labels} - {*labels} - ({"answers"} if row.answers else set()):
                yield "row{s} without a label"
                continue
            inputs, targets = self._inputs(row), tuple[str, ...]()
            facts = {name: ", ".join(row.inputs[name]) for name in self.facts if name in row.inputs}
            facts |= {"image": row.image} if row.image else {}
            if row.answers:
                people = [answer for row in rows for answer in row.answers]
                answers, known = spread_evenly(people), {*self._answers(data)}
                inputs["answer"] = Counter(answers).most_common(1)[0][0]
                facts["people"] = str(len(people))
                targets = answers if split == self.test_split else (inputs["answer"],)
                labels["answers"] = {text: weight for text, weight in weights(answers).items() if text in known}
            yield Example(f"{split}-{name}", inputs, targets, facts, labels)

    def _inputs(self, row: TableRow) -> dict[str, Any]:
        """The inputs of a labelled row; of several texts as alternatives."""
        texts = {"question": row.questions, "caption": row.captions, **row.inputs}
        inputs: dict[str, Any] = {"image": row.image} if row.image else {}
        return inputs | {
            name: values[0] if len(values) == 1 else tuple(values)
            for name, values in texts.items()
            if values and name not in self.facts
        }

    def _labelled(self, data: PublishedData, split: str) -> Mapping[str, list[TableRow]]:
        """The rows of a split by their ids: one, or several with the answers of several people."""
        return data.once(f"rows {split}", lambda: self._join_rows(data, split))

    def _join_rows(self, data: PublishedData, split: str) -> Mapping[str, list[TableRow]]:
        by_id: dict[str, list[TableRow]] = {}
        ids: dict[str, str] = {}  # without ids: the inputs of a row -> the id of the row that has them
        apart = {"answers", *self.facts}  # what may differ between rows of one id
        for place, row in self._rows(data, split):
            number = str(len(by_id) + 1)
            same = ids.setdefault(repr(self._inputs(row)), number) if row.answers else number
            rows = by_id.setdefault(row.id or same, [])
            if rows and row.model_dump(exclude=apart) != rows[0].model_dump(exclude=apart):
                raise DataError(
                    f"{place}: an earlier row with the same id has other inputs or labels; give every example its own "
                    "id"
                )
            rows.append(row)
            if row.boxes:
                data.once(f"boxes {row.image}", row.boxes.copy)
        return by_id

    def _answers(self, data: PublishedData) -> tuple[str, ...]:
        """The answer vocabulary."""
        split = self.train_split
        by_id = (rows for rows in self._labelled(data, split).values() if rows[0].answers)
        common = (Counter(answer for row in rows for answer in row.answers).most_common(1)[0][0] for rows in by_id)
        return data.once("vocabulary", lambda: most_common(common, self.num_answers, data.main_file(split)))

    def boxes(self, data: PublishedData, key: str) -> tuple[Sequence[Any], None] | None:
        boxes = data.once(f"boxes {key}", list[Any])
        return (boxes, None) if boxes else None

    def vocabularies(self, data: PublishedData) -> Mapping[str, tuple[str, ...]]:
        known = {"truth": TRUTHS} if "truth" in self.labels else {}
        return known | ({"answers": self._answers(data)} if "answers" in self.labels else {})
