"""VQA's official accuracy, of all questions and by their types; what people reach, and the most common answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from mmgen_vl.answers import accuracy, agreement, comparable

from mmgen.parts import Metric
from mmgen.tensors import Example, Generation, Prediction, Scores

from ..columns import Column, by_kind, means, scores, told, unknown

FIRST = ("yes/no", "number", "other")  # answer types as papers put them
CHANCE = "chance: the most common answer to questions of a type, counted in these examples"
PEOPLE = "people: a person's answer among those of the others"


class VqaAccuracyMetric(Metric):
    """In percent. Its columns:

    accuracy             over all questions
    yes/no, number, ...  by answer type, `facts["answer_type"]`
    what color is, ...   by question type, `facts["question_type"]`, where the config says so; one that is called like
                         another column is "what color is (question)"
    """

    def __init__(self, question_types: bool) -> None:
        self.question_types = question_types

    def score(self, generations: Sequence[Generation | Prediction], examples: Sequence[Example]) -> Scores:
        each = [
            accuracy(_answer(one, example), example.targets) if example.targets else None
            for one, example in zip(generations, examples, strict=True)
        ]
        return scores(self._columns(each, examples), unknown(each, "answers of people"))

    def references(self, examples: Sequence[Example]) -> Scores:
        people = [agreement(example.targets) if example.targets else None for example in examples]
        common = _most_common(examples)
        chance = [accuracy(common[_type(one)], one.targets) if one.targets else None for one in examples]
        columns = self._columns(people, examples)
        values = means(columns) | means(self._columns(chance, examples), "chance_")
        return Scores(values, columns, (PEOPLE, CHANCE, *unknown(people, "answers of people")))

    def _columns(self, each: Column, examples: Sequence[Example]) -> dict[str, Column]:
        answers = by_kind(each, examples, "answer_type")
        columns = {"accuracy": each, **{name: answers[name] for name in FIRST if name in answers}, **answers}
        if self.question_types:
            for name, column in by_kind(each, examples, "question_type").items():
                columns[f"{name} (question)" if name in columns else name] = column
        return columns


def _answer(one: Generation | Prediction, example: Example) -> str:
    return one.value if isinstance(one.value, str) else str(told(one.value, "label", example))


def _type(example: Example) -> str:
    return str(example.facts.get("question_type", ""))


def _most_common(examples: Sequence[Example]) -> dict[str, str]:
    """Question type -> the answer that most people give to such questions; of several the first of the alphabet."""
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for example in examples:
        counts[_type(example)].update(comparable(example.targets)[0])
    return {kind: max(sorted(own), key=own.__getitem__, default="") for kind, own in counts.items()}
