"""The answerer: a trained step as a function from questions and pictures to answers with a confidence."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

import mmgen
from mmgen.errors import DataError, MmgenError
from mmgen.examples import LOG_PROBABILITY
from mmgen.parts import FailedImage, Picture

PICTURES = 256  # whose features are held at a time


@dataclass(frozen=True)
class Answered:
    """The answer to one question about one picture. `probabilities`: answer -> probability, as many as the answerer
    lists, the most probable first; of a written answer its own alone."""

    probabilities: Mapping[str, float]

    def best(self, unanswerable: Collection[str]) -> tuple[str, float]:
        """The most probable answer and its probability; "" and 0 if it is one of `unanswerable`, or nothing was
        written."""
        answer, probability = next(iter(self.probabilities.items()), ("", 0.0))
        return ("", 0.0) if not answer or answer in unanswerable else (answer, probability)


class Answerer:
    """A loaded answerer. `name`: what results say about it: where it is, its step and its kind."""

    def __init__(self, where: str, step: str, question: str, device: torch.device, batch_size: int) -> None:
        """Raises DataError."""
        try:
            self.predictor = mmgen.load(where, step=step or None, device=str(device))
        except MmgenError as error:
            raise DataError(f"answerable: answerer: {error}") from None
        names = self.predictor.names
        place = f"answerable: {where}: step '{self.predictor.step}'"
        texts = [name for name in names.required if name not in names.pictures]
        if question and question not in texts:
            raise DataError(f"{place} has no input '{question}' for a question; choose from: {', '.join(texts)}")
        readers = [question] if question else [name for name in texts if "question" in names.inputs[name].fields]
        kinds = self.predictor.kind in ("label", "text")
        if not (kinds and names.pictures and len(texts) == len(readers) == 1):
            raise DataError(
                f"{place} reads {names.reads} and predicts {self.predictor.kind}; set step to one that reads a picture "
                "and a question and answers with labels or texts, or question to the input that reads the question"
            )
        self.question, self.batch_size = readers[0], batch_size
        kind = "answers chosen" if self.predictor.kind == "label" else "answers written"
        self.name = f"{where}, step '{self.predictor.step}' ({kind})"
        self._features: dict[str, Mapping[str, Any]] = {}  # a picture's key -> its values, by input

    def __call__(self, questions: Sequence[tuple[str, Picture]]) -> list[Answered]:
        """The answer to each question about its picture. A question without words has no answer. Raises DataError."""
        queries = [
            {self.question: text, **self._values_of_picture(picture)} for text, picture in questions if text.strip()
        ]
        predict = self.predictor.predict_all if self.predictor.kind == "label" else self.predictor.ask_all
        answers = iter(predict(queries, batch_size=self.batch_size))
        return [self._read_answer(next(answers)) if text.strip() else Answered({}) for text, _ in questions]

    def _values_of_picture(self, picture: Picture) -> Mapping[str, Any]:
        """A picture as a query's values. The features of the latest pictures are held."""
        if picture.key not in self._features:
            if len(self._features) >= PICTURES:
                del self._features[next(iter(self._features))]
            self._features[picture.key] = {
                name: self._value_of_input(name, picture) for name in self.predictor.names.pictures
            }
        return self._features[picture.key]

    def _value_of_input(self, name: str, picture: Picture) -> Any:
        features = self.predictor.features
        if name not in features.embedders:
            return picture
        record = next(iter(features.extractor(name).records([picture])), None)
        if record is None or isinstance(record, FailedImage):
            raise DataError(f"answerable: {record.reason if record else f'{picture.key}: it has no features'}")
        return record

    def _read_answer(self, answer: Any) -> Answered:
        if answer.error:
            raise DataError(f"answerable: the answerer cannot read a question: {answer.error}")
        if self.predictor.kind == "label":
            return Answered(answer.value["probabilities"])
        best = answer.best
        confidence = math.exp(best.score) if best.score_kind == LOG_PROBABILITY else best.score
        return Answered({best.text: confidence} if best.text.strip() else {})
