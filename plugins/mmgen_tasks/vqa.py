"""VQA's official accuracy, by type of answer and question; of people, and of the most common answers; its result files.

Its files are read in `mmgen_data`.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from mmgen_vision.answers import accuracy, agreement, comparable

from mmgen.examples import Example, Generation, Prediction, Scores
from mmgen.reading.results import ResultFiles
from mmgen.reading.rows import Id, Row, raw_rows, validated

from .columns import ByFacts, Column, by_kind, means, prediction_value, scores, unknown

FIRST = ("yes/no", "number", "other")  # answer types in the order of papers
CHANCE = "chance: the most common answer to questions of a type, counted in these examples"
PEOPLE = "people: each person's answer, scored against the answers of the others"


class VqaAccuracy(ByFacts):
    """VQA's official accuracy in percent, over all questions and by answer type: an answer is right if three people of
    ten gave it (Antol et al., 2015).

    Its columns are accuracy; yes/no, number, ... by `facts["answer_type"]`; and those of the facts `by`.
    """

    type: Literal["vqa_accuracy"] = "vqa_accuracy"
    judges = frozenset({"text", "label"})
    required_labels = ("answers",)

    @classmethod
    def result_files(cls):
        return VqaResults()

    def score(self, generations: Sequence[Generation | Prediction], examples: Sequence[Example]) -> Scores:
        accuracies = [
            accuracy(_answer(prediction.value, example.id), example.targets) if example.targets else None
            for prediction, example in zip(generations, examples, strict=True)
        ]
        return scores(self._columns(accuracies, examples), unknown(accuracies, "answers of people"))

    def references(self, examples: Sequence[Example]) -> Scores:
        people = [
            agreement(example.targets) if int(example.facts.get("people", len(example.targets))) > 1 else None
            for example in examples
        ]
        common = _most_common(examples)
        chance = [
            accuracy(common[_question_type(example)], example.targets) if example.targets else None
            for example in examples
        ]
        columns = self._columns(people, examples)
        values = means(columns) | means(self._columns(chance, examples), "chance_")
        several = any(value is not None for value in people)
        return Scores(values, columns, (*([PEOPLE] * several), CHANCE, *unknown(chance, "answers of people")))

    def _columns(self, column: Column, examples: Sequence[Example]) -> dict[str, Column]:
        answers = by_kind(column, examples, "answer_type")
        columns = {"accuracy": column, **{name: answers[name] for name in FIRST if name in answers}, **answers}
        return {**columns, **self.by_facts({"": column}, examples), **columns}


def _answer(value: Any, example_id: str) -> str:
    return value if isinstance(value, str) else str(prediction_value(value, "label", example_id))


def _question_type(example: Example) -> str:
    return str(example.facts.get("question_type", ""))


def _most_common(examples: Sequence[Example]) -> dict[str, str]:
    """Question type -> the most common answer of people to such questions, the alphabetically first of several."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        counts[_question_type(example)].update(comparable(example.targets)[0])
    return {kind: max(sorted(counted), key=counted.__getitem__, default="") for kind, counted in counts.items()}


class Result(Row):
    """A row of a result file."""

    question_id: Id
    answer: str


class VqaResults(ResultFiles):
    """`[{"question_id": 262148000, "answer": "red"}, ...]`, as VQA's evaluation reads it."""

    name = "vqa"

    def read(self, path: Path, examples: Sequence[Example]) -> dict[str, Any]:
        rows = validated(raw_rows(path, "results"), Result, unique="question_id")
        return {row.question_id: row.answer for _, row in rows}

    def write(self, values: Mapping[str, Any], examples: Sequence[Example]) -> str:
        rows = [
            {"question_id": _number_or_text(example.id), "answer": _answer(values.get(example.id), example.id)}
            for example in examples
        ]
        return json.dumps(rows, ensure_ascii=False) + "\n"


def _number_or_text(text: str) -> int | str:
    """An id as published files have it: a number if the text is one."""
    return int(text) if re.fullmatch("0|[1-9][0-9]{0,17}", text) else text
