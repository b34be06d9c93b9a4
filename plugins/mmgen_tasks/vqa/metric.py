"""The metric of VQA: official accuracy, by type of answer and question; of people, and of the most common answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from mmgen_vision.answers import accuracy, agreement, comparable

from mmgen.examples import Example, Generation, Prediction, Scores
from mmgen.parts import Metric

from ..score_columns import Column, by_kind, means, prediction_value, scores, unknown

FIRST = ("yes/no", "number", "other")  # answer types in the order of papers
CHANCE = "chance: the most common answer to questions of a type, counted in these examples"
PEOPLE = "people: each person's answer, scored against the answers of the others"


class VqaAccuracyMetric(Metric):
    """In percent. Its columns:

    accuracy             over all questions
    yes/no, number, ...  by answer type, `facts["answer_type"]`
    what color is, ...   by question type, `facts["question_type"]`, where the config says so; "(question)" is added to
                         the name of a type that is already a column
    """

    def __init__(self, question_types: bool) -> None:
        self.question_types = question_types

    def score(self, generations: Sequence[Generation | Prediction], examples: Sequence[Example]) -> Scores:
        accuracies = [
            accuracy(_predicted_answer(prediction, example), example.targets) if example.targets else None
            for prediction, example in zip(generations, examples, strict=True)
        ]
        return scores(self._columns(accuracies, examples), unknown(accuracies, "answers of people"))

    def references(self, examples: Sequence[Example]) -> Scores:
        people = [agreement(example.targets) if _count_people(example) > 1 else None for example in examples]
        common = _most_common(examples)
        chance = [
            accuracy(common[_question_type(example)], example.targets) if example.targets else None
            for example in examples
        ]
        columns = self._columns(people, examples)
        values = means(columns) | means(self._columns(chance, examples), "chance_")
        several = any(value is not None for value in people)
        notes = (*([PEOPLE] if several else []), CHANCE, *unknown(chance, "answers of people"))
        return Scores(values, columns, notes)

    def _columns(self, column_values: Column, examples: Sequence[Example]) -> dict[str, Column]:
        answers = by_kind(column_values, examples, "answer_type")
        columns = {"accuracy": column_values, **{name: answers[name] for name in FIRST if name in answers}, **answers}
        if self.question_types:
            for name, column in by_kind(column_values, examples, "question_type").items():
                columns[f"{name} (question)" if name in columns else name] = column
        return columns


def _predicted_answer(prediction: Generation | Prediction, example: Example) -> str:
    return (
        prediction.value
        if isinstance(prediction.value, str)
        else str(prediction_value(prediction.value, "label", example))
    )


def _count_people(example: Example) -> int:
    """How many people answered; the data may have repeated their answers."""
    return int(example.facts.get("people", len(example.targets)))


def _question_type(example: Example) -> str:
    return str(example.facts.get("question_type", ""))


def _most_common(examples: Sequence[Example]) -> dict[str, str]:
    """Question type -> the most common answer of people to such questions, the alphabetically first of several."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        counts[_question_type(example)].update(comparable(example.targets)[0])
    return {
        kind: max(sorted(answer_counts), key=answer_counts.__getitem__, default="")
        for kind, answer_counts in counts.items()
    }
