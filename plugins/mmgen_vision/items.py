"""Items of VCR: a question with four answers and four rationales, and the examples made from it.

Shared by the published and the drawn data set.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mmgen.examples import All, Example

from .mentions_config import Mention

NAMES = "Casey Riley Jessie Jackie Avery Jaime Peyton Kerry Jody Kendall Frankie Pat Quinn".split()  # VL-BERT's code
PERSON = "person"  # VCR's class of the objects with names
CHOICES = 4


class Text(NamedTuple):
    """A text with its mentions of objects."""

    text: str
    mentions: tuple[Mention, ...]

    def then(self, addition: Text) -> Text:
        """This text followed by another."""
        shift = len(self.text) + 1
        moved = ((first + shift, end + shift, objects) for first, end, objects in addition.mentions)
        return Text(f"{self.text} {addition.text}", (*self.mentions, *moved))


class Item(NamedTuple):
    """A question, its answers, and the rationales of the right answer. `answer` and `rationale`: which choice is right,
    where that is known. `objects`: the class of each object of the picture."""

    id: str
    image: str
    objects: tuple[str, ...]
    question: Text
    answers: tuple[Text, ...]
    rationales: tuple[Text, ...]
    answer: int | None
    rationale: int | None
    facts: Mapping[str, Any] = {}

    def examples(self, subtask: str) -> Iterator[Example]:
        """ITEM-answer, a choice among answers; ITEM-rationale, a choice among rationales for the right answer; and
        ITEM-rationale-K, given answer K, whether it is right or not. `subtask`: "answer", "rationale", "both" or
        "every"."""
        if subtask != "rationale":
            yield self._example("answer", self.question, self.answers, self.answer)
        if subtask != "answer" and self.answer is not None:
            yield self._example(
                "rationale", self.question.then(self.answers[self.answer]), self.rationales, self.rationale
            )
        if subtask == "every":
            for number, answer in enumerate(self.answers):
                yield self._example(f"rationale-{number}", self.question.then(answer), self.rationales, None)

    def _example(self, name: str, question: Text, choices: tuple[Text, ...], right: int | None) -> Example:
        mentions = {"question_mentions": All(question.mentions)} if question.mentions else {}
        inputs = {"image": self.image, "question": question.text, **mentions}
        labels: dict[str, Any] = {
            "choices": tuple(choice.text for choice in choices),
            "choice_mentions": tuple(choice.mentions for choice in choices),
            "objects": self.objects,
        }
        if right is not None:
            labels["choice"] = right
        asks = name.partition("-")[0]
        facts = {"asks": asks, "item": self.id, "group": self.id, "image": self.image, **self.facts}
        return Example(f"{self.id}-{name}", inputs, (), facts, labels)
