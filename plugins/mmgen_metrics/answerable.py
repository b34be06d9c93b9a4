"""The metric: asks the answerer each generated question about its picture, and about pictures of other examples."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

import torch
from mmgen_vision.answers import normalise
from mmgen_vision.pictures import picture_of

from mmgen.errors import DataError
from mmgen.examples import Example, Generation, Scores
from mmgen.parts import Metric, Picture

from . import Answerable
from .answerer import Answered, Answerer


@dataclass(frozen=True)
class Judgement:
    """What the answerer makes of one question.

    answer      the most probable answer; "" if it is one of `Answerable.unanswerable`, or nothing was written
    confidence  its probability
    elsewhere   the mean probability of the same answer about other pictures; None without other pictures
    answered    whether there is an answer, and its confidence is at least the threshold
    """

    answer: str
    confidence: float
    elsewhere: float | None
    answered: bool

    @property
    def gain(self) -> float | None:
        """How much less probable the answer is about other pictures; None for a question that is not answered."""
        return self.confidence - self.elsewhere if self.answered and self.elsewhere is not None else None


class AnswerableMetric(Metric):
    """In percent. Its columns:

    answered            questions with an answer whose confidence is at least the threshold
    answer_confidence   the mean confidence; 0 for a question that is unanswerable
    picture_gain        of the answered questions: the confidence, minus that in the same answer about other pictures
    answer_consistency  of the questions that were generated for an answer: those that are answered with it
    """

    def __init__(self, config: Answerable) -> None:
        self.config = config

    def prepare(self, pictures: Callable[[Sequence[Example]], Mapping[str, Picture]], device: torch.device) -> None:
        config = self.config
        self.pictures = pictures
        self.answerer = Answerer(config.answerer, config.step, config.question, device, config.batch_size)

    def score(self, generations: Sequence[Generation], examples: Sequence[Example]) -> Scores:
        texts = [generation.text for generation in generations]
        judgements = [self._judge_answers(*answers) for answers in self._ask_about_pictures(texts, examples)]
        columns: dict[str, list[float | None]] = {
            "answered": [100.0 * judgement.answered for judgement in judgements],
            "answer_confidence": [100 * judgement.confidence for judgement in judgements],
        }
        if self.config.other_pictures:
            gains = (judgement.gain for judgement in judgements)
            columns["picture_gain"] = [None if gain is None else 100 * gain for gain in gains]
        conditions = [_expected_answer(example, self.config.condition) for example in examples]
        if any(condition is not None for condition in conditions):
            columns["answer_consistency"] = [
                None
                if condition is None
                else 100.0 * (judgement.answered and normalise(judgement.answer) == normalise(condition))
                for judgement, condition in zip(judgements, conditions, strict=True)
            ]
        values = {name: _mean(column) for name, column in columns.items()}
        notes = [f"answerable: answers by {self.answerer.name}"]
        if "picture_gain" in values and values["picture_gain"] is None:
            notes.append("picture_gain needs answered questions, and two pictures")
        return Scores(values, columns, tuple(notes))

    def _judge_answers(self, first: Answered, *elsewhere: Answered) -> Judgement:
        answer, confidence = first.best(self.config.unanswerable)
        known = [about.probabilities.get(answer, 0.0) for about in elsewhere]
        answered = bool(answer) and confidence >= self.config.threshold
        return Judgement(answer, confidence, fmean(known) if known else None, answered)

    def _ask_about_pictures(self, texts: Sequence[str], examples: Sequence[Example]) -> list[list[Answered]]:
        """The answers to one text for each example: about its picture, and about some of other examples. Raises
        DataError."""
        pictures = self.pictures(examples)
        shown = [picture_of(example, pictures, "answerable") for example in examples]
        order = sorted(range(len(examples)), key=lambda place: hashlib.sha256(examples[place].id.encode()).digest())
        answers: dict[int, list[Answered]] = {}
        for start in range(0, len(order), self.config.batch_size):  # neighbours in this order share features
            groups = {
                order[at]: [shown[order[at]], *_next_pictures(shown, order, at, self.config.other_pictures)]
                for at in range(start, min(start + self.config.batch_size, len(order)))
            }
            questions = [(texts[place], picture) for place, group in groups.items() for picture in group]
            answered = iter(self.answerer(questions))
            answers |= {place: [next(answered) for _ in group] for place, group in groups.items()}
        return [answers[place] for place in range(len(examples))]


def _next_pictures(shown: Sequence[Picture], order: Sequence[int], at: int, count: int) -> list[Picture]:
    """The first `count` different pictures that follow in the order, other than the own one."""
    following = [shown[place] for place in (*order[at + 1 :], *order[:at])[: 10 * count]]
    return list({picture.key: picture for picture in following if picture.key != shown[order[at]].key}.values())[:count]


def _expected_answer(example: Example, name: str) -> str | None:
    """The answer for which the question of an example was generated: by default that of a prompt "answer: ...". Raises
    DataError if the example lacks the named input or fact."""
    if not name:
        return str(example.facts["prompt_value"]) if example.facts.get("prompt_kind") == "answer" else None
    value = {**example.facts, **example.inputs}.get(name)
    if not isinstance(value, str):
        raise DataError(
            f"answerable: condition: example '{example.id}' has no text '{name}' among its inputs and facts"
        )
    return value


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None
