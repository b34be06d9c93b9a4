"""Items of VCR: a question with four answers and four rationales, and the examples that are made of one. Published and
drawn items share them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from mmgen_vl.mentions_config import Mention

from mmgen.tensors import All, Example

NAMES = "Casey Riley Jessie Jackie Avery Jaime Peyton Kerry Jody Kendall Frankie Pat Quinn".split()  # VL-BERT's code
PERSON = "person"  # what VCR says that those are which have names
CHOICES = 4


class Text(NamedTuple):
    """Words with what they mention."""

    text: str
    mentions: tuple[Mention, ...]

    def then(self, other: Text) -> Text:
        """Both, one behind the other."""
        shift = len(self.text) + 1
        moved = ((first + shift, end + shift, objects) for first, end, objects in other.mentions)
        return Text(f"{self.text} {other.text}", (*self.mentions, *moved))


class Item(NamedTuple):
    """A question, its answers, and the rationales of the right one. `answer` and `rationale`: which choice is right,
    where that is known. `objects`: what each object of the picture is."""

    id: str
    image: str
    objects: tuple[str, ...]
    question: Text
    answers: tuple[Text, ...]
    rationales: tuple[Text, ...]
    answer: int | None
    rationale: int | None
    facts: Mapping[str, Any] = {}

    def examples(self, asks: str) -> Iterator[Example]:
        """ITEM-answer, a choice of an answer; ITEM-rationale, one of a rationale for the right answer; and
        ITEM-rationale-K where answer K is given, whether it is right or not. `asks`: "answer", "rationale", "both" or
        "every"."""
        if asks != "rationale":
            yield self._example("answer", "answer", self.question, self.answer)
        if asks != "answer" and self.answer is not None:
            yield self._example("rationale", "rationale", self.question.then(self.answers[self.answer]), self.rationale)
        if asks == "every":
            for number, answer in enumerate(self.answers):
                yield self._example(f"rationale-{number}", "rationale", self.question.then(answer), None)

    def _example(self, name: str, asks: str, question: Text, right: int | None) -> Example:
        inputs: dict[str, Any] = {"image": self.image, "question": question.text}
        if question.mentions:
            inputs["question_mentions"] = All(question.mentions)
        choices = self.answers if asks == "answer" else self.rationales
        labels: dict[str, Any] = {
            "choices": tuple(choice.text for choice in choices),
            "choice_mentions": tuple(choice.mentions for choice in choices),
            "objects": self.objects,
        }
        if right is not None:
            labels["choice"] = right
        facts = {"asks": asks, "item": self.id, "group": self.id, "image": self.image, **self.facts}
        return Example(f"{self.id}-{name}", inputs, (), facts, labels)
